import numpy as np
import pytest

from leanrank.data import RankingData, make_ranking
from leanrank.errors import InputError
from leanrank.metrics import evaluate
from leanrank.online import OnlineRanker, simulate, user
from leanrank.online.serving import METHODS
from leanrank.solvers.sampling.pair_sampling import new_state, next_uniform

DATA = make_ranking(n_queries=15, docs_per_query=(1, 14), n_features=6, n_levels=3, random_state=0)


def by_hand(ranker, data, visitor, n, seed):
    """Do what a service would do, list by list."""
    queries, key, ndcg = new_state(seed, stream=4), int(new_state(seed, stream=5)[0]), []
    for t in range(n):
        q = int(next_uniform(queries) * data.n_queries)
        rows = slice(data.query_ptr[q], data.query_ptr[q + 1])
        grades = data.y[rows].astype(int)
        shown = ranker.rank(data.X[rows])
        ranked = grades[shown.documents]
        clicks = visitor.simulate(ranked[None, :], key, first=t)[0]
        ranker.observe(shown, clicks)
        discount = 1 / np.log2(np.arange(2, 12))
        best = (2.0 ** np.sort(grades)[::-1][:10] - 1) @ discount[: min(10, len(grades))]
        ndcg.append((2.0**ranked - 1) @ discount[: len(ranked)] / best if best else 0.0)
    return np.array(ndcg)


@pytest.mark.parametrize("method", METHODS)
def test_the_loop_does_what_a_service_does_bit_by_bit(method):
    fast, slow = (OnlineRanker(method, n_features=6, random_state=3) for _ in range(2))
    run = simulate(fast, DATA, user("informational"), 80, random_state=7)
    ndcg = by_hand(slow, DATA, user("informational"), 80, 7)
    for name, now, then in zip(fast.state._fields, fast.state, slow.state, strict=True):
        np.testing.assert_array_equal(now, then, err_msg=name)
    np.testing.assert_allclose(run.ndcg, ndcg, atol=1e-12)
    assert run.cumulative == pytest.approx(ndcg @ 0.995 ** np.arange(80))
    np.testing.assert_array_equal(run.weights[-1], fast.coef_)


def test_a_run_in_two_parts_is_a_run_of_the_ranker():
    whole = OnlineRanker("spd", n_features=6)
    first = simulate(whole, DATA, user("perfect"), 50, at=[1, 20, 50])
    assert whole.n_lists_ == 50
    again = OnlineRanker("spd", n_features=6)
    shorter = simulate(again, DATA, user("perfect"), 20, at=[20])
    np.testing.assert_array_equal(shorter.weights[0], first.weights[1])
    np.testing.assert_array_equal(shorter.ndcg, first.ndcg[:20])


def test_two_learners_of_a_seed_meet_the_same_queries():
    """On one-document queries nothing can be chosen, so that NDCG tells which query it was."""
    data = RankingData(np.eye(6), [0, 1, 2, 0, 1, 2], qid=[1, 1, 2, 2, 3, 3]).queries[np.arange(3)]
    runs = [simulate(OnlineRanker(m, n_features=6), data, user("perfect"), 30) for m in METHODS]
    means = {np.round((run.ndcg > 0).mean(), 6) for run in runs}
    assert means == {1.0}


def test_offline_measures_average_ties():
    run = simulate(OnlineRanker("spd", n_features=6), DATA, user("perfect"), 300, at=[1, 300])
    value = evaluate(DATA, DATA.X @ run.weights[1], measures="ndcg@10", ties="average")
    assert run.offline(DATA)[1] == pytest.approx(value.means["ndcg@10"])
    assert run.online().shape == (2,)


@pytest.mark.parametrize("method", ["spd", "lcra", "pdgd", "dbgd"])
def test_every_learner_learns(method):
    data = make_ranking(n_queries=60, n_features=6, n_levels=3, random_state=1)
    more = {} if method == "pdgd" else {"eta0": 0.05}
    ranker = OnlineRanker(method, n_features=6, random_state=0, **more)
    run = simulate(ranker, data, user("perfect"), 3000, at=[1, 3000])
    random = evaluate(data, np.zeros(len(data)), measures="ndcg@10", ties="average")
    assert run.offline(data)[-1] > random.means["ndcg@10"] + 0.15


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"n_queries": 0}, "at least 1"),
        ({"at": [0]}, "from 1"),
        ({"at": [999]}, "n_queries=9"),
        ({"user": user("perfect", 2)}, "grade 2"),
        ({"ranker": OnlineRanker(n_features=5)}, "5 features"),
        ({"data": DATA.replace(y=DATA.y + 0.5)}, "whole numbers"),
    ],
)
def test_wrong_input_is_refused(change, word):
    given = {"ranker": OnlineRanker(n_features=6), "data": DATA, "user": user("perfect")}
    with pytest.raises(InputError, match=word):
        simulate(**{**given, "n_queries": 9, **change})


def test_steps_that_are_too_large_are_told():
    ranker = OnlineRanker("lcra", n_features=6, mu=100.0, eta0=10.0)
    with pytest.raises(InputError, match="lower eta0"):
        simulate(ranker, DATA, user("perfect"), 500)
