"""The small quadratic problem over the simplex, by its conditions of optimality."""

import numpy as np
import pytest

from leanrank.solvers.first_order._simplex import minimise_over_simplex


def value(Q, b, x):
    return 0.5 * x @ Q @ x + b @ x


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("rank", [1, 3, 40])
def test_it_is_feasible_certified_and_optimal(seed, rank):
    rng = np.random.default_rng([seed, rank])
    n = int(rng.integers(2, 40))
    A = rng.normal(size=(n, rank)) * 10.0 ** rng.integers(-3, 4)
    if seed % 3 == 0:
        A[n // 2 :] = A[: n - n // 2]  # equal planes
    Q = A @ A.T
    b = rng.normal(size=n) * (seed % 4 > 0)
    start = rng.dirichlet(np.ones(n)) if seed % 2 else np.eye(n)[0]
    before = value(Q, b, start)
    kept = start.copy()
    scale = max(1.0, np.abs(Q).max())
    x, gap = minimise_over_simplex(Q, b, start, 1e-10 * scale)
    assert np.array_equal(start, kept)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1.0, abs=1e-12)
    assert value(Q, b, x) <= before + 1e-12 * scale
    slope = Q @ x + b
    assert x @ slope - slope.min() <= 1e-9 * scale
    assert gap == pytest.approx(max(0.0, x @ slope - slope.min()), abs=1e-12 * scale)


def test_a_linear_problem_ends_in_a_corner():
    x, gap = minimise_over_simplex(np.zeros((4, 4)), np.array([3.0, 1, 2, 5]), np.eye(4)[3], 1e-12)
    assert x.tolist() == [0, 1, 0, 0]
    assert gap == 0


def test_one_unknown():
    x, gap = minimise_over_simplex(np.ones((1, 1)), np.ones(1), np.ones(1), 1e-12)
    assert x.tolist() == [1.0]
    assert gap == 0
