import numpy as np
import pytest

from leanrank.data import RankingData, make_ranking
from leanrank.errors import InputError
from leanrank.online import OnlineRanker, simulate, try_learners, user
from leanrank.online.trial import prefer

DATA = make_ranking(n_queries=20, docs_per_query=(8, 16), n_features=5, n_levels=3, random_state=2)
LEARNERS = {"spd": {"eta0": 0.05}, "pdgd": {}}


@pytest.fixture(scope="module")
def trial():
    return try_learners(DATA, LEARNERS, ["perfect", "informational"], 150, n_seeds=2)


def test_results_are_those_of_single_runs(trial):
    pairs = [(one.user, one.learner) for one in trial.results]
    assert pairs == [(who, name) for who in ("perfect", "informational") for name in LEARNERS]
    one = trial.results[2]
    for seed in (0, 1):
        ranker = OnlineRanker("spd", n_features=5, eta0=0.05, random_state=seed)
        run = simulate(ranker, DATA, user("informational"), 150, at=one.at, random_state=seed)
        assert run.cumulative == one.cumulative[seed]
        np.testing.assert_array_equal(run.offline(DATA), one.learned[seed])
        np.testing.assert_array_equal(run.online(), one.served[seed])


def test_threads_and_measuring_elsewhere_change_nothing_else(trial):
    again = try_learners(
        DATA, LEARNERS, ["perfect"], 150, n_seeds=2, n_jobs=2, test=DATA.queries[:5]
    )
    for one, other in zip(again.results, trial.results[:2], strict=True):
        np.testing.assert_array_equal(one.cumulative, other.cumulative)
        assert one.preference == other.preference
    assert again.held_out
    assert not np.array_equal(again.results[0].learned, trial.results[0].learned)


def test_users_prefer_what_is_better_and_choose_no_side_otherwise():
    good = prefer(DATA, np.linalg.lstsq(DATA.X, DATA.y)[0], user("perfect"), 400, 0)
    assert good.wins > 2 * good.losses
    assert good.decided is not None
    same = prefer(DATA, np.zeros(5), user("perfect"), 400, 0)
    assert same.decided is None
    assert abs(same.wins - same.losses) < 4 * np.sqrt(same.wins + same.losses)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"learners": {}}, "nothing to try"),
        ({"users": ["mean"]}, "perfect"),
        ({"n_seeds": 0}, "at least 1"),
        ({"data": DATA.replace(y=DATA.y + 5)}, "grade 7, simulated users know 0 to 4"),
        ({"test": RankingData(np.ones((2, 2)), [0, 1])}, "have 2 features, the others 5"),
    ],
)
def test_wrong_input_is_refused(change, word):
    given = {"data": DATA, "learners": LEARNERS, "users": ["perfect"], "n_queries": 10}
    with pytest.raises(InputError, match=word):
        try_learners(**{**given, **change})
