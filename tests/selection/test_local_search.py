"""Moves, the sieve against plain least squares, and what keeps the search honest."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.data import RankingData, make_ranking
from leanrank.metrics import evaluate
from leanrank.rankers import RankRLS
from leanrank.registry import AlphaPath, Front, Sizes
from leanrank.selection import Space
from leanrank.selection.engine import some_columns
from leanrank.selection.local_search import Sieve, find_pool, improve, neighbours, refitting
from leanrank.selection.trials import Task, run_trial


@pytest.fixture(scope="module")
def data():
    return make_ranking(
        n_queries=90, docs_per_query=12, n_features=12, n_informative=4, random_state=3
    )


@pytest.fixture(scope="module")
def task(data):
    return Task(data.queries[:60], data.queries[60:], "ndcg@10", ("ndcg@10", "map"))


def domination(alpha):
    return Space("domination", {"tol": 1e-6}, sweep=AlphaPath(alphas=(alpha,)))


def test_neighbours_differ_by_one_feature():
    support, pool = np.array([2, 5, 7]), np.array([9, 5, 0])
    found = [tuple(s) for s in neighbours(support, pool, grow=True)]
    assert len(found) == len(set(found)) == 3 + 3 * 2 + 2
    for one in found:
        assert list(one) == sorted(one)
        assert len({2, 5, 7} ^ set(one)) <= 2
        assert set(one) <= {0, 2, 5, 7, 9}
    assert max(map(len, neighbours(support, pool, grow=False))) == 3
    assert [s.tolist() for s in neighbours(np.array([1]), np.array([3]), grow=False)] == [[3]]


def left_out_measure(task, support):
    """Measure RankRLS on every group of queries, fitted on the others."""
    values = []
    for others, mine in (part.scaled for part in task.parts):
        ranker = RankRLS(alpha=1e-3).fit(some_columns(others, support))
        scores = ranker.predict(some_columns(mine, support).X)
        values += evaluate(mine, scores, measures="ndcg@10").per_query["ndcg@10"].tolist()
    return np.nanmean(values)  # some queries have one level


def test_the_sieve_passes_supports_that_do_well_on_queries_left_out(task):
    """Its first choice is among the best tenth of all swaps, judged one by one with RankRLS."""
    moves = list(neighbours(np.array([2, 6, 9]), np.arange(12), grow=False))
    swaps = [move for move in moves if len(move) == 3]
    first = Sieve(task, np.arange(12)).best(swaps)[0]
    worth = [left_out_measure(task, move) for move in swaps]
    assert left_out_measure(task, first) >= np.quantile(worth, 0.9)


def test_sparse_and_dense_data_give_the_same_choice(task):
    training = task.training.replace(X=csr_array(task.training.X))
    sparse = Task(training, task.validation, "ndcg@10")
    moves = list(neighbours(np.array([2, 6, 9]), np.arange(12), grow=True))
    dense, other = (Sieve(each, np.arange(12)).best(moves) for each in (task, sparse))
    assert [move.tolist() for move in dense] == [move.tolist() for move in other]


def test_the_sieve_finds_the_feature_that_is_missing(task):
    """Without one of four informative features, bringing it back promises most."""
    strongest = RankRLS().fit(task.training).coef_
    top = np.sort(np.argsort(-np.abs(strongest))[:4])
    missing = top[np.argmax(np.abs(strongest[top]))]
    support = top[top != missing]
    moves = list(neighbours(support, np.arange(12), grow=True))
    best = Sieve(task, np.arange(12)).best(moves)
    assert missing in best[0]


def test_a_swap_that_helps_is_made(task):
    """A model that lacks its best feature gets it back, at its own size."""
    weights = np.abs(RankRLS().fit(task.training).coef_)
    order = np.argsort(-weights)
    support = np.sort(np.append(order[1:3], order[-1]))
    (parent,) = run_trial(task, domination(1e-3), {}, columns=support)
    found = improve(replace(task, max_features=3), parent, np.arange(12))
    best = max(found, key=lambda one: one.score("ndcg@10"))
    assert order[0] in best.model.indices
    assert best.n_features <= 3
    assert best.score("ndcg@10") > parent.score("ndcg@10")
    again = improve(replace(task, max_features=3), parent, np.arange(12))
    assert [one.name for one in again] == [one.name for one in found]
    assert all(
        np.array_equal(one.model.values, other.model.values)
        for one, other in zip(found, again, strict=True)
    )


def test_pure_noise_is_not_improved():
    """Labels that no feature explains: next to nothing may look better than where it began."""
    rng = np.random.default_rng(0)
    noise = RankingData(
        rng.normal(size=(1200, 10)), rng.integers(0, 3, 1200), np.repeat(np.arange(100), 12)
    )
    task = Task(noise.queries[:70], noise.queries[70:], "ndcg@10")
    candidates = run_trial(task, Space("domination", {}, sweep=AlphaPath(None, 10, 0.1)), {})
    gains = []
    for parent in [one for one in candidates if 2 <= one.n_features <= 6]:
        found = improve(replace(task, max_features=6), parent, np.arange(10))
        best = max([parent, *found], key=lambda one: one.score("ndcg@10"))
        gains.append(best.score("ndcg@10") - parent.score("ndcg@10"))
    assert gains
    assert np.mean(gains) < 0.006


def test_limits_hold(task, data):
    from leanrank.selection import Costs

    costs = Costs(np.arange(1.0, 13.0))
    limited = Task(task.training, task.validation, "ndcg@10", ("ndcg@10",), costs=costs)
    (parent,) = run_trial(limited, domination(1e-3), {}, columns=np.array([0, 3, 5]))
    assert parent.cost == 1 + 4 + 6
    for one in improve(replace(limited, max_features=4, max_cost=12.0), parent, np.arange(12)):
        assert one.n_features <= 4
        assert one.cost <= 12


def test_without_validation_data_the_groups_judge(data):
    task = Task(data, None, "ndcg@10", ("ndcg@10", "map"))
    (parent,) = run_trial(task, domination(1e-3), {}, columns=np.array([0, 1, 2]))
    assert parent.training_values == {}
    assert len(parent.values["map"]) == data.n_queries
    for one in improve(replace(task, max_features=4), parent, np.arange(12)):
        assert set(one.values) == {"ndcg@10", "map"}
        assert one.n_features <= 4


def test_who_can_be_started_from(task):
    (path,) = run_trial(task, domination(1e-3), {}, columns=np.array([0, 1]))
    assert refitting(path).ranker == "domination"
    greedy = run_trial(task, Space("greedyrankrls", {"alpha": 0.01}, sweep=Sizes(2)), {})
    assert refitting(greedy[0]).ranker == "rankrls"
    assert refitting(greedy[0]).sweep.alphas == (0.01, 0.003, 0.001)
    boosted = run_trial(task, Space("rankboost", {"n_rounds": 3}), {})
    assert refitting(boosted[0]) is None
    lean = run_trial(task, Space("lean", {"max_pairs": 0, "n_folds": 2}, sweep=Front()), {})
    assert all(refitting(one) is None for one in lean)  # it has dropped features itself
    everything = [path, *boosted, *lean]
    used = np.unique(np.concatenate([one.model.indices for one in everything]))
    assert sorted(find_pool(everything, "ndcg@10").tolist()) == used.tolist()
    assert find_pool([], "ndcg@10").tolist() == []


@pytest.mark.parametrize("gaps", [False, True])
def test_curves_get_a_drop_a_swap_and_weaker_shrinkage(data, gaps):
    """A model of curves without its best feature gets it back, also where values are missing."""
    X = np.minimum(data.X, 0.3)
    if gaps:
        X = np.where(np.random.default_rng(0).random(X.shape) < 0.02, np.nan, X)
    bent = data.replace(X=1000.0 * X)  # curves need no scale
    task = Task(bent.queries[:60], bent.queries[60:], "ndcg@10", ("ndcg@10",))
    best = int(np.argmax(np.abs(RankRLS().fit(data).coef_)))
    others = np.setdiff1d(np.arange(12), best)[:3]
    fixed = {"curves": 4, "l1_ratio": 1.0, "tol": 1e-4}
    space = Space("domination", fixed, sweep=AlphaPath(alphas=(0.01,)))
    (parent,) = run_trial(task, space, {}, columns=others)
    assert not parent.model.is_linear
    found = improve(replace(task, max_features=3), parent, np.arange(12))
    weaker = [one for one in found if set(one.model.indices) <= set(others)]
    assert {one.parameters["alpha"] for one in weaker} >= {0.003, 0.001}
    top = max(found, key=lambda one: one.score("ndcg@10"))
    assert best in top.model.indices
    assert not top.model.is_linear
    assert top.score("ndcg@10") > parent.score("ndcg@10")
