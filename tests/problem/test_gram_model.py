"""The inner problem, a quadratic plus an elastic net, against its own optimality conditions."""

import itertools

import numpy as np
import pytest

from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.quadratic_models import GramModel


def random_hessian(rng, n, rank=None, spread=0.0):
    A = rng.normal(size=(rank or 2 * n, n)) * 10 ** (spread * rng.uniform(-1, 1, n))
    return A.T @ A / len(A)


def value(H, c, penalty, w, step):
    return 0.5 * step @ H @ step + c @ step + penalty.value(w + step) - penalty.value(w)


def solve(H, c, w, penalty, **options):
    return GramModel(H, **options).minimise(penalty, c, w)


CASES = [
    pytest.param(n, ratio, spread, id=f"{n} features, l1_ratio {ratio}, spread {spread}")
    for n, ratio, spread in itertools.product((1, 5, 40), (1.0, 0.5, 0.0), (0.0, 2.0))
]


@pytest.mark.parametrize(("n", "ratio", "spread"), CASES)
@pytest.mark.parametrize("signed", [False, True])
def test_the_conditions_of_the_optimum(n, ratio, spread, signed):
    rng = np.random.default_rng([n, int(10 * ratio), int(spread), signed])
    H = random_hessian(rng, n, spread=spread)
    c = rng.normal(size=n)
    factors = rng.choice([0.0, 1.0, 1.0, 2.0, np.inf], n) if signed else None
    signs = rng.choice([-1, 0, 1], n) if signed else None
    penalty = ElasticNet.build(0.1, ratio, n, factors, signs)
    w = np.where(penalty.excluded, 0.0, rng.normal(size=n) * rng.choice([0, 1], n))
    if signed:
        w = np.where(signs * w < 0, 0.0, w)
    copies = H.copy(), c.copy(), w.copy()
    step = solve(H, c, w, penalty, accuracy=1e-10)
    for given, copy in zip((H, c, w), copies, strict=True):
        assert np.array_equal(given, copy)
    residual = penalty.residual(w + step, c + H @ step)
    assert np.max(residual / np.sqrt(np.diag(H) + penalty.ridge)) <= 1e-6
    assert np.isfinite(penalty.value(w + step))
    assert value(H, c, penalty, w, step) <= 1e-15


@pytest.mark.parametrize("seed", range(5))
def test_collinear_features_do_not_stop_the_descent(seed):
    rng = np.random.default_rng(seed)
    H = random_hessian(rng, 30, rank=6)
    H = np.block([[H, H], [H, H]])  # and every feature twice
    c = np.tile(H[:30, :30] @ rng.normal(size=30), 2)
    penalty = ElasticNet.build(0.05, 1.0, 60)
    w = np.zeros(60)
    step = solve(H, c, w, penalty, accuracy=1e-8)
    assert np.isfinite(step).all()
    assert value(H, c, penalty, w, step) < 0
    assert penalty.residual(step, c + H @ step).max() <= 1e-4
    loose = solve(H, c, w, penalty)
    best, got = value(H, c, penalty, w, step), value(H, c, penalty, w, loose)
    assert got <= best + 0.01 * abs(best)


def test_a_feature_without_curvature_is_left_alone():
    H = np.diag([2.0, 0.0])
    penalty = ElasticNet.build(0.1, 1.0, 2)
    step = solve(H, np.array([-1.0, -5.0]), np.zeros(2), penalty)
    np.testing.assert_allclose(step, [0.45, 0.0])
    penalty = ElasticNet.build(0.2, 0.5, 2)  # its ridge bounds it
    step = solve(H, np.array([-1.0, -5.0]), np.zeros(2), penalty, accuracy=1e-9)
    np.testing.assert_allclose(step, [0.9 / 2.1, 49.0])


def test_no_features_and_an_optimal_start_give_no_step():
    penalty = ElasticNet.build(1.0, 1.0, 0)
    assert solve(np.zeros((0, 0)), np.zeros(0), np.zeros(0), penalty).shape == (0,)
    penalty = ElasticNet.build(1.0, 1.0, 3)
    assert not solve(np.eye(3), np.full(3, 0.9), np.zeros(3), penalty).any()


def test_a_weight_that_changes_its_sign_passes_through_zero_exactly():
    rng = np.random.default_rng(0)
    H = random_hessian(rng, 20)
    penalty = ElasticNet.build(0.8, 1.0, 20)
    w = 5 * rng.normal(size=20)
    step = solve(H, rng.normal(size=20) - H @ w, w, penalty, accuracy=1e-10)
    assert np.count_nonzero(w + step) < 20  # zeros are exact, not small
    assert np.abs((w + step)[w + step != 0]).min() > 1e-6


def test_a_pure_ridge_is_one_linear_system():
    rng = np.random.default_rng(1)
    H = random_hessian(rng, 60, rank=20)
    c = rng.normal(size=60)
    penalty = ElasticNet.build(0.01, 0.0, 60)
    w = rng.normal(size=60)
    step = solve(H, c, w, penalty, max_rounds=1)
    exact = np.linalg.solve(H + 0.01 * np.eye(60), -c - 0.01 * w)
    np.testing.assert_allclose(step, exact, atol=1e-6 * np.abs(exact).max())
