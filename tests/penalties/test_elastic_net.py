"""The elastic net against its definition: slopes from both sides, conjugates by search."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from leanrank.errors import InputError
from leanrank.penalties.elastic_net import ElasticNet


def one(penalty, j, x):
    """The penalty of one weight, from the formula."""
    if x == 0:
        return 0.0
    rate = penalty.above[j] if x > 0 else penalty.below[j]
    return rate * abs(x) + 0.5 * penalty.ridge[j] * x * x


def random_penalty(rng, n=40):
    factors = rng.choice([0.0, 0.5, 1.0, 3.0, np.inf], n)
    signs = rng.choice([-1, 0, 1], n)
    return ElasticNet.build(0.7, rng.choice([0.0, 0.3, 1.0]), n, factors, signs), factors, signs


def test_build_places_factors_and_signs():
    penalty = ElasticNet.build(2.0, 0.25, 4, [1.0, 0.0, np.inf, 3.0], [0, 1, 0, -1])
    assert penalty.above.tolist() == [0.5, 0.0, np.inf, np.inf]
    assert penalty.below.tolist() == [0.5, np.inf, np.inf, 1.5]
    assert penalty.ridge.tolist() == [1.5, 0.0, 0.0, 4.5]
    assert penalty.excluded.tolist() == [False, False, True, False]
    assert penalty.free.tolist() == [False, True, False, False]


def test_one_sign_for_all_features():
    penalty = ElasticNet.build(1.0, 1.0, 3, None, 1)
    assert np.isinf(penalty.below).all()
    assert penalty.above.tolist() == [1, 1, 1]


def test_without_strength_every_feature_is_free():
    assert ElasticNet.build(0.0, 1.0, 2).free.all()
    assert ElasticNet.build(0.0, 1.0, 2, [1, np.inf]).free.tolist() == [True, False]
    assert not ElasticNet.build(1.0, 0.0, 2).free.any()


@pytest.mark.parametrize(
    "factors", [[1.0], [[1.0, 1.0]], [1.0, np.nan], [1.0, -1.0], np.ones((2, 1))]
)
def test_wrong_factors_are_refused(factors):
    with pytest.raises(InputError, match="penalty_factors must be 2 numbers"):
        ElasticNet.build(1.0, 1.0, 2, factors)


@pytest.mark.parametrize("signs", [[1], [1, 2], [0.5, 1], [np.nan, 1], 3, [[1, 1]]])
def test_wrong_signs_are_refused(signs):
    with pytest.raises(InputError, match="signs must be 2"):
        ElasticNet.build(1.0, 1.0, 2, None, signs)


@pytest.mark.parametrize("seed", range(5))
def test_value_is_the_formula_and_infinite_only_for_forbidden_weights(seed):
    rng = np.random.default_rng(seed)
    penalty, factors, signs = random_penalty(rng)
    w = rng.normal(size=40) * rng.choice([0, 1], 40)
    assert penalty.value(w) == pytest.approx(sum(one(penalty, j, w[j]) for j in range(40)))
    allowed = np.where(np.isinf(factors) | (signs * w < 0), 0.0, w)
    assert np.isfinite(penalty.value(allowed))
    assert penalty.value(np.zeros(40)) == 0.0


@pytest.mark.parametrize("seed", range(10))
def test_residual_is_the_steepest_descent_seen_from_both_sides(seed):
    rng = np.random.default_rng(seed)
    penalty, factors, signs = random_penalty(rng)
    w = rng.normal(size=40) * rng.choice([0, 1], 40)
    w = np.where(np.isinf(factors) | (signs * w < 0), 0.0, w)
    c = rng.normal(size=40) * 2
    h = 1e-7
    for j, got in enumerate(penalty.residual(w, c)):
        here = one(penalty, j, w[j])
        right = c[j] + (one(penalty, j, w[j] + h) - here) / h
        left = c[j] - (one(penalty, j, w[j] - h) - here) / h
        assert got == pytest.approx(max(0.0, -right, left), abs=1e-5)
    at_zero = penalty.residual(np.zeros(40), c)
    np.testing.assert_array_equal(at_zero, penalty.excess(c))


@pytest.mark.parametrize("seed", range(5))
def test_the_dual_scale_is_the_largest_feasible_one(seed):
    rng = np.random.default_rng(seed)
    penalty, _, _ = random_penalty(rng)
    c = rng.normal(size=40) * 3
    a = penalty.dual_scale(c)
    assert 0 < a <= 1
    hard = (penalty.ridge == 0) & ~penalty.free
    assert np.all(penalty.excess(a * c)[hard] <= 1e-15)
    if a < 1:
        assert np.any(penalty.excess(1.001 * a * c)[hard] > 0)


def test_a_forbidden_direction_does_not_limit_the_dual_point():
    penalty = ElasticNet.build(1.0, 1.0, 2, [1, np.inf], [1, 0])
    assert penalty.dual_scale(np.array([5.0, -9.0])) == 1.0  # pulls to negative weights
    assert penalty.dual_scale(np.array([-5.0, -9.0])) == pytest.approx(0.2)


@pytest.mark.parametrize("seed", range(5))
def test_the_conjugate_by_search(seed):
    rng = np.random.default_rng(seed)
    penalty = ElasticNet.build(0.5, 0.4, 6, rng.random(6) + 0.1, rng.choice([-1, 0, 1], 6))
    c = rng.normal(size=6) * 2
    total = 0.0
    for j in range(6):
        best = 0.0
        for side, rate in ((1, penalty.above[j]), (-1, penalty.below[j])):
            if np.isfinite(rate):
                found = minimize_scalar(
                    lambda x, s=side, j=j: c[j] * s * x + one(penalty, j, s * x),
                    bounds=(0, 1000),
                    method="bounded",
                    options={"xatol": 1e-12},
                )
                best = max(best, -found.fun)
        total += best
    assert penalty.conjugate(c) == pytest.approx(total, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_fenchel_and_young(seed):
    rng = np.random.default_rng(seed)
    penalty, factors, signs = random_penalty(rng)
    w = rng.normal(size=40)
    w = np.where(np.isinf(factors) | (signs * w < 0) | penalty.free, 0.0, w)
    c = rng.normal(size=40) * 2
    c *= penalty.dual_scale(c)
    assert penalty.value(w) + penalty.conjugate(c) >= -c @ w - 1e-12


def test_restrict_and_times():
    penalty = ElasticNet.build(2.0, 0.5, 3, [1, 2, np.inf], [0, 1, 0])
    part = penalty.restrict(np.array([1]))
    assert (part.above[0], part.below[0], part.ridge[0]) == (2.0, np.inf, 2.0)
    double = penalty.times(2.0)
    assert double.above.tolist() == [2.0, 4.0, np.inf]
    assert double.ridge.tolist() == [2.0, 4.0, 0.0]


def test_alpha_max_ratio_makes_zero_optimal_and_nothing_less_does():
    rng = np.random.default_rng(0)
    penalty = ElasticNet.build(1.0, 0.6, 30, rng.random(30) + 0.2, rng.choice([-1, 0, 1], 30))
    c = rng.normal(size=30)
    ratio = penalty.alpha_max_ratio(c)
    assert not penalty.times(ratio * (1 + 1e-12)).excess(c).any()
    assert penalty.times(ratio * 0.999).excess(c).any()


def test_alpha_max_ratio_is_infinite_only_where_no_strength_empties_the_model():
    c = np.array([1.0, -2.0])
    assert ElasticNet.build(1.0, 0.0, 2).alpha_max_ratio(c) == np.inf
    assert ElasticNet.build(1.0, 0.0, 2, [np.inf, np.inf]).alpha_max_ratio(c) == 0.0
    assert ElasticNet.build(1.0, 1.0, 2, None, [1, -1]).alpha_max_ratio(c) == 0.0
    assert ElasticNet.build(1.0, 1.0, 2, [np.inf, np.inf]).alpha_max_ratio(c) == 0.0
    assert ElasticNet.build(1.0, 0.0, 2, None, [1, -1]).alpha_max_ratio(c) == 0.0
    assert ElasticNet.build(1.0, 0.5, 2).alpha_max_ratio(np.zeros(2)) == 0.0
    # a feature without any penalty is never emptied and does not count
    assert ElasticNet.build(1.0, 1.0, 2, [0.0, 1.0]).alpha_max_ratio(c) == 2.0
