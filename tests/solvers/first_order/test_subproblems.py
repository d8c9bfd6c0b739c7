"""The small quadratic problem over the simplex, by its conditions of optimality."""

import numpy as np
import pytest

from leanrank.solvers.first_order import _subproblems
from leanrank.solvers.first_order._subproblems import minimise_over_simplex


def value(Q, b, x):
    return 0.5 * x @ Q @ x + b @ x


@pytest.fixture
def steps(monkeypatch):
    """A list that grows by one entry per step."""
    made = []

    def counted(*given):
        made.append(len(given[1]))
        return free_step(*given)

    free_step = _subproblems._free_step
    monkeypatch.setattr(_subproblems, "_free_step", counted)
    return made


@pytest.mark.parametrize("seed", [*range(30), 57, 741])  # two that once cycled between equal planes
@pytest.mark.parametrize("rank", [1, 3, 40])
def test_it_is_feasible_certified_and_optimal(seed, rank, steps):
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
    assert len(steps) <= 3 * n


def test_an_accuracy_beyond_rounding_ends_with_the_true_gap(steps):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 5)) * 1e3
    Q, b = A @ A.T, rng.normal(size=20)
    x, gap = minimise_over_simplex(Q, b, np.eye(20)[0], -1.0)
    slope = Q @ x + b
    assert gap == max(0.0, x @ slope - slope.min())
    assert gap <= 1e-9 * np.abs(Q).max()
    assert 20 < len(steps) <= 60


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_overflows_ends_and_claims_nothing(steps):
    Q = np.eye(30)
    Q[3, 3] = np.inf
    _, gap = minimise_over_simplex(Q, np.zeros(30), np.full(30, 1 / 30), 1e-9)
    assert np.isnan(gap)
    assert len(steps) <= 31


def test_a_linear_problem_ends_in_a_corner():
    x, gap = minimise_over_simplex(np.zeros((4, 4)), np.array([3.0, 1, 2, 5]), np.eye(4)[3], 1e-12)
    assert x.tolist() == [0, 1, 0, 0]
    assert gap == 0


def test_one_unknown():
    x, gap = minimise_over_simplex(np.ones((1, 1)), np.ones(1), np.ones(1), 1e-12)
    assert x.tolist() == [1.0]
    assert gap == 0
