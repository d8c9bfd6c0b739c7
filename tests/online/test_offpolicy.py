"""Counterfactual estimates against exact expectations, and against live users."""

import itertools

import numpy as np
import pytest

from leanrank.data import ClickLog, RankingData, read_clicks
from leanrank.errors import DataWarning, InputError
from leanrank.online import ClickModel, evaluate_policy

USER = ClickModel(np.array([[1.0], [0.5], [0.5]]), [0.25, 0.5, 0.75], np.full((2, 1, 1), 0.5))
GRADES = np.array([0, 2, 1])  # of the three documents of the one query


def probability(clicks, shown):
    value = USER.assess((GRADES[shown][None], np.array([clicks]))).log_likelihood
    return np.exp(value)


def every_list(copies=2):
    """Return a log in which each list with its clicks comes as often as it is probable."""
    rows, position, clicked, chance = [], [], [], []
    for shown in itertools.permutations(range(3)):
        for clicks in itertools.product((False, True), repeat=3):
            times = 4096 * probability(clicks, list(shown))
            assert np.isclose(times, round(times))
            for _ in range(round(times) * copies):
                rows += shown
                clicked += clicks
    n = len(rows) // 3
    position, chance = np.tile([1, 2, 3], n), np.tile([1 / 3, 1 / 2, 1.0], n)
    data = RankingData(np.eye(3), qid=["q"] * 3, doc_ids=["a", "b", "c"])
    ptr = np.arange(0, 3 * n + 1, 3)
    return ClickLog(data, np.array(rows), position, np.array(clicked), ptr, chance)


@pytest.fixture(scope="module")
def log():
    return every_list()


@pytest.mark.parametrize("discount", ["none", "log"])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_estimates_of_all_lists_are_the_truth(log, order, discount):
    scores = np.empty(3)
    scores[list(order)] = [3.0, 2.0, 1.0]
    worth = np.ones(3) if discount == "none" else 1 / np.log2([2, 3, 4])
    truth = USER.probabilities(GRADES[list(order)][None])[0] @ worth
    found = evaluate_policy(log, scores, discount=discount)
    for name in ("ips", "self-normalised", "doubly-robust"):
        np.testing.assert_allclose(found.estimates[name].value, truth, rtol=1e-9)
    np.testing.assert_allclose(found.mean_weight, 1.0)
    gain = (log.clicked.reshape(-1, 3) * worth).sum(axis=1)
    np.testing.assert_allclose(found.logged.value, gain.mean())


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_by_position_a_rank_is_the_clicks_of_its_document_there(log, order):
    scores = np.empty(3)
    scores[list(order)] = [3.0, 2.0, 1.0]
    shown, hits = log.row.reshape(-1, 3), log.clicked.reshape(-1, 3)
    expected = sum(hits[shown[:, r] == d, r].mean() for r, d in enumerate(order))
    bare = ClickLog(log.data, log.row, log.position, log.clicked, log.list_ptr)
    found = evaluate_policy(bare, scores, assume="position")
    for name in ("ips", "self-normalised", "doubly-robust"):
        np.testing.assert_allclose(found.estimates[name].value, expected, rtol=1e-9)
    np.testing.assert_allclose(found.mean_weight, 1.0)
    assert found.effective_lists > 2 * evaluate_policy(log, scores).effective_lists


def test_by_position_is_the_truth_for_users_who_go_by_position():
    user = ClickModel.position_based([0.1, 0.4, 0.8])
    log, truth = logged(np.random.default_rng(1), 60_000, 1.0, user)
    found = evaluate_policy(log, log.X[:, 0], assume="position")
    for name, one in found.estimates.items():
        assert abs(one.value - truth) < 4 * one.error, name
        assert one.error < 0.02


def test_weights_by_hand(log):
    """Clipping, effective lists and standard errors, list by list."""
    scores = np.array([1.0, 3.0, 2.0])  # b, c, a
    shown, hits = log.row.reshape(-1, 3), log.clicked.reshape(-1, 3)
    values, clipped, totals = [], [], []
    for row, hit in zip(shown, hits, strict=True):
        w = [
            3.0 * (row[0] == 1),
            6.0 * (row.tolist() == [1, 2, 0]),
            6.0 * (row.tolist() == [1, 2, 0]),
        ]
        values.append(np.dot(w, hit))
        clipped.append(np.dot(np.minimum(w, 4.0), hit))
        totals.append(sum(w))
    found = evaluate_policy(log, scores, clip=4.0)
    assert np.isclose(found.estimates["ips"].error, np.std(values, ddof=1) / np.sqrt(len(values)))
    assert np.isclose(found.estimates["clipped"].value, np.mean(clipped))
    assert found.estimates["clipped"].value < found.estimates["ips"].value
    assert np.isclose(found.effective_lists, sum(totals) ** 2 / np.dot(totals, totals))
    one = found.estimates["ips"]
    np.testing.assert_allclose(
        [one.low, one.high], one.value + np.array([-1, 1]) * 1.96 * one.error, rtol=1e-4
    )


CASCADE = ClickModel.cascade([0.1, 0.4, 0.8], [0.2, 0.4, 0.6])


def logged(rng, n, spread, user=CASCADE):
    """Serve lists of three out of four by drawing without replacement, and let users click."""
    grades = np.array([[0, 2, 1, 1], [2, 0, 0, 1]])
    queries = rng.integers(2, size=n)
    strength = np.exp(spread * np.array([[0.5, 1.0, 0.0, 0.0], [1.0, 0.0, 0.5, 0.0]]))
    noisy = np.log(strength)[queries] + rng.gumbel(size=(n, 4))
    shown = np.argsort(-noisy, axis=1)[:, :3]
    picked = np.take_along_axis(strength[queries], shown, axis=1)
    left = strength[queries].sum(axis=1, keepdims=True) - np.cumsum(picked, axis=1) + picked
    clicked = user.simulate(
        np.take_along_axis(grades[queries], shown, axis=1), int(rng.integers(2**31))
    )
    columns = {
        "session": np.repeat(np.arange(n), 3),
        "query": np.repeat(queries, 3),
        "document": shown.ravel(),
        "position": np.tile([1, 2, 3], n),
        "clicked": clicked.ravel(),
        "propensity": (picked / left).ravel(),
    }
    best = np.argsort(-grades, axis=1, kind="stable")[:, :3]
    truth = user.probabilities(np.take_along_axis(grades, best, axis=1)).sum(axis=1)[queries].mean()
    features = RankingData(
        grades.reshape(-1, 1).astype(float),
        qid=np.repeat([0, 1], 4),
        doc_ids=np.tile(np.arange(4), 2).astype(str),
    )
    return read_clicks(columns, features, propensity="propensity", keep_unshown=True), truth


def test_estimates_of_samples_are_near_the_truth_and_their_intervals_hold():
    rng, misses, errors = np.random.default_rng(0), {}, {}
    for _ in range(60):
        log, truth = logged(rng, 1_500, 1.0)
        found = evaluate_policy(log, log.X[:, 0])
        for name, one in found.estimates.items():
            misses[name] = misses.get(name, 0) + (not one.low <= truth <= one.high)
            errors.setdefault(name, []).append((one.value - truth, one.error))
    for name, pairs in errors.items():
        error, promised = np.array(pairs).T
        if name != "clipped":
            assert abs(error.mean()) < 3 * error.std() / np.sqrt(60)
            assert misses[name] <= 9  # 3 of 60 are expected
            assert 0.7 < promised.mean() / error.std() < 1.4
    spread = {name: np.std([e for e, _ in pairs]) for name, pairs in errors.items()}
    assert spread["doubly-robust"] < spread["ips"]
    assert spread["self-normalised"] < spread["ips"]


def test_a_ranker_that_was_never_served_is_told():
    log, _ = logged(np.random.default_rng(0), 500, 1.0)
    few = ClickLog(
        log.data, log.row[:300], log.position[:300], log.clicked[:300], log.list_ptr[:101],
        log.propensity[:300],
    )  # fmt: skip
    with pytest.warns(DataWarning, match=r"only \d+\.\d of 100 lists are effective"):
        evaluate_policy(few, log.X[:, 0])
    rows = np.tile(log.row[:3], 500)  # one list, always
    scores = np.ones(8)
    scores[rows] = 0.0
    fixed = ClickLog(log.data, rows, log.position, log.clicked, log.list_ptr, np.ones(len(rows)))
    with pytest.warns(DataWarning, match=r"only 0\.0 of 500"):
        value = evaluate_policy(fixed, scores)
    assert value.mean_weight[0] == 0
    assert value.estimates["ips"].value == 0
    assert np.isfinite([one.value for one in value.estimates.values()]).all()


def test_the_features_may_stand_in_the_log():
    log = {
        "session": ["s1", "s1", "s2", "s2"],
        "query": ["q"] * 4,
        "document": ["a", "b", "b", "a"],
        "position": [1, 2, 1, 2],
        "clicked": [0, 1, 1, 0],
        "propensity": [0.5, 1.0, 0.5, 1.0],
        "bm25": [1.0, 2.0, 2.0, 1.0],
    }
    import pyarrow as pa

    for table in (log, pa.table(log)):
        clicks = read_clicks(table, propensity="propensity")
        assert clicks.data.feature_names == ("bm25",)
        assert clicks.data.X.tolist() == [[1.0], [2.0]]
        assert clicks.propensity.tolist() == [0.5, 1.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [1.0, np.nan, 0.0]}, "not finite"),
        ({"scores": [1.0]}, "scores"),
        ({"assume": "nothing"}, "assume='nothing' is not known"),
        ({"discount": "exp"}, "discount='exp' is not known"),
        ({"clip": 0.5}, "below the mean weight"),
    ],
)
def test_what_cannot_be_is_refused(log, change, message):
    with pytest.raises(InputError, match=message):
        evaluate_policy(log, **{"scores": np.arange(3.0), **change})
    bare = ClickLog(log.data, log.row, log.position, log.clicked, log.list_ptr)
    with pytest.raises(InputError, match="has no propensities"):
        evaluate_policy(bare, np.arange(3.0))


def test_a_propensity_is_a_probability():
    log = {"session": [1], "query": ["q"], "document": ["a"], "position": [1], "clicked": [1]}
    for wrong in (0.0, 1.5, np.nan):
        with pytest.raises(InputError, match="a propensity is above 0 and at most 1"):
            read_clicks(log | {"p": [wrong], "f": [1.0]}, propensity="p")


def test_logs_that_say_too_little_or_hold_absurd_positions_are_refused():
    log = {"session": ["s", "s"], "query": ["q", "q"], "document": ["a", "b"], "clicked": [1, 0]}
    log |= {"position": [1, 2], "propensity": [0.5, 1.0], "f": [1.0, 2.0]}
    with pytest.raises(InputError, match="one list"):
        evaluate_policy(read_clicks(log, propensity="propensity"), [0.0, 1.0])
    log["position"] = [1, 10**9]
    with pytest.raises(InputError, match="up to a million"):
        read_clicks(log)
