"""The front against a brute force, and sentences about wishes that cannot be met."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leanrank.errors import InputError
from leanrank.model import Model
from leanrank.selection import Candidate, bootstrap_interval, choose, pareto_front


def made(value, n_features, cost=None, *, name="", other=None, training=None):
    model = Model.from_coef(np.ones(n_features)) if n_features else None
    values = {"map": np.atleast_1d(np.asarray(value, dtype=float))}
    if other is not None:
        values["ndcg@10"] = np.array([other])
    kept = {} if training is None else {"map": np.asarray(training, dtype=float)}
    cost = float(n_features) if cost is None else cost
    return Candidate(name, "none", {}, model, values, n_features, cost, kept)


POINTS = st.lists(
    st.tuples(
        st.sampled_from([0.1, 0.2, 0.3, np.nan]),
        st.integers(0, 4),
        st.sampled_from([1.0, 2.0, 5.0]),
    ),
    max_size=12,
)


@given(POINTS)
def test_the_front_is_what_nothing_beats(points):
    candidates = [made(*point) for point in points]
    front = pareto_front(candidates, measure="map")
    usable = [p for p in points if p[1] and not np.isnan(p[0])]

    def beats(a, b):
        return a[0] >= b[0] and a[1] <= b[1] and a[2] <= b[2] and a != b

    expected = {p for p in usable if not any(beats(q, p) for q in usable)}
    found = [(c.score("map"), c.n_features, c.cost) for c in front]
    assert set(found) == expected
    assert len(found) == len(expected)
    assert [c.n_features for c in front] == sorted(c.n_features for c in front)


def test_the_first_of_equals_stays():
    front = pareto_front([made(0.5, 2, name="a"), made(0.5, 2, name="b")], measure="map")
    assert [one.name for one in front] == ["a"]


def test_for_an_error_lower_is_better():
    one, two = made(0.5, 1), made(0.5, 3)
    for candidate, error in ((one, 0.3), (two, 0.2)):
        candidate.values["all_pairs_error"] = np.array([error])
    assert pareto_front([one, two], measure="all_pairs_error") == [one, two]
    assert choose([one, two], measure="all_pairs_error") is two
    assert choose([one, two], measure="map", min_measure={"all_pairs_error": 0.25}) is two
    with pytest.raises(InputError, match=r"the best all_pairs_error is 0.2"):
        choose([one, two], measure="map", min_measure={"all_pairs_error": 0.1})


def test_training_queries_judge_too():
    """Three training queries outvote one of validation, where the other is luckier."""
    lucky = made([0.9], 2, training=[0.1, 0.2, np.nan])
    sound = made([0.5], 2, training=[0.4, 0.6, np.nan])
    assert lucky.means["map"] > sound.means["map"]
    assert sound.score("map") == pytest.approx(0.5)
    assert choose([lucky, sound], measure="map") is sound


@pytest.fixture
def sizes():
    return [made(0.30, 2), made(0.441, 9), made(0.46, 14, 3.5), made(0.47, 30)]


def test_the_best_within_limits(sizes):
    assert choose(sizes, measure="map").n_features == 30
    assert choose(sizes, measure="map", max_features=10).n_features == 9
    assert choose(sizes, measure="map", max_cost=4).n_features == 14
    assert choose(sizes, measure="map", min_measure={"map": 0.44}).n_features == 9
    assert choose(sizes, measure="map", min_measure={"map": 0.44}, max_features=20).n_features == 14


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        (
            {"max_features": 10, "min_measure": {"map": 0.45}},
            "no model reaches map 0.45, max_features=10: the best map is 0.441 with 9 features; "
            "reaching map 0.45 takes 14 features",
        ),
        (
            {"min_measure": {"map": 0.6}},
            "no model reaches map 0.6: the best map is 0.47 with 30 features",
        ),
        (
            {"max_features": 3, "max_cost": 1.0},
            "no model was found with max_features=3, max_cost=1: the smallest has 2 features at a "
            "cost of 2",
        ),
    ],
)
def test_what_comes_nearest(sizes, wishes, sentence):
    with pytest.raises(InputError) as caught:
        choose(sizes, measure="map", **wishes)
    assert str(caught.value) == sentence


def test_wishes_that_exclude_each_other():
    one, two = made(0.5, 1, other=0.1), made(0.1, 2, other=0.5)
    with pytest.raises(InputError, match=r"map is 0.5 with 1 feature and ndcg@10 is 0.5 with 2"):
        choose([one, two], measure="map", min_measure={"map": 0.4, "ndcg@10": 0.4})


def test_models_that_rank_nothing_are_never_chosen():
    with pytest.raises(InputError, match="no model ranks anything"):
        choose([made(np.nan, 3), made(1.0, 0)], measure="map")


def test_one_standard_error_is_that_of_the_difference():
    rng = np.random.default_rng(0)
    level = rng.random(50)
    best = made(level, 9)
    near = made(level - 0.001 + 0.02 * rng.normal(size=50), 4)
    far = made(level - 0.05, 1)  # always lower by as much: no doubt about it
    assert choose([best, near, far], measure="map", rule="1se") is near
    assert choose([best, near, far], measure="map") is best
    with pytest.raises(InputError, match="rule='2se'"):
        choose([best], measure="map", rule="2se")


def test_bootstrap_interval():
    rng = np.random.default_rng(1)
    values = np.append(rng.normal(0.5, 0.2, 400), np.nan)
    low, high = bootstrap_interval(values)
    error = 0.2 / 20
    assert low == pytest.approx(np.nanmean(values) - 1.96 * error, abs=0.004)
    assert high == pytest.approx(np.nanmean(values) + 1.96 * error, abs=0.004)
    assert bootstrap_interval(values) == (low, high)
    assert np.isnan(bootstrap_interval(np.array([np.nan]))).all()
