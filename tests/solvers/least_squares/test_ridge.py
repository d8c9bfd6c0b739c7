from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.losses.hinge import HingeLoss
from leanrank.losses.squared import SquaredLoss
from leanrank.problem.memory import MemoryProblem
from leanrank.solvers.least_squares import ridge
from leanrank.solvers.least_squares.ridge import solve_ridge

pytestmark = pytest.mark.filterwarnings("error")  # no warning from LAPACK reaches the user


def problem_of(X, seed=0, size=10, offset=False, normalize="none"):
    rng = np.random.default_rng(seed)
    n = X.shape[0]
    ptr = np.arange(0, n + 1, size)
    labels = Labels(
        y=rng.integers(0, 3, n).astype(np.float64),
        query_ptr=ptr,
        offset=rng.normal(size=n) if offset else None,
        normalize=normalize,
    )
    loss = SquaredLoss()
    return MemoryProblem(X, loss, loss.prepare(labels))


def centred(problem, X, size=10):
    """Give X and y + offset with the mean of each query taken off: least squares remains."""
    X = X.toarray() if hasattr(X, "toarray") else X
    plan = problem.plan
    target = plan.y if plan.offset is None else plan.y + plan.offset
    X, target = X.astype(np.float64).reshape(-1, size, X.shape[1]), target.reshape(-1, size)
    X = (X - X.mean(axis=1, keepdims=True)).reshape(-1, X.shape[2])
    return X, (target - target.mean(axis=1, keepdims=True)).ravel()


@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 1e-3, 1.0, 1e3, 1e12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [False, True])
def test_against_least_squares(alpha, dtype, offset):
    X = np.random.default_rng(1).normal(size=(200, 8)).astype(dtype)
    problem = problem_of(X, offset=offset)
    A, b = centred(problem, X)
    if alpha < 1:
        more = np.sqrt(alpha) * np.eye(8)
        expected = np.linalg.lstsq(np.vstack([A, more]), np.append(b, np.zeros(8)), rcond=None)[0]
    else:
        expected = np.linalg.solve(A.T @ A + alpha * np.eye(8), A.T @ b)
    w = solve_ridge(problem, [alpha])[0]
    assert np.allclose(w, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("alpha", [0.0, 1e-16, 1e-12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_singular_systems_get_the_solution_of_least_norm(alpha, dtype):
    rng = np.random.default_rng(2)
    base = np.round(rng.normal(size=(200, 6)) * 64) / 64
    constant = np.full((200, 1), 0.1)
    by_query = np.repeat(rng.normal(size=(20, 1)), 10, axis=0)
    X = np.hstack([base, base[:, :3], base[:, :1] + base[:, 1:2], constant, by_query]).astype(dtype)
    problem = problem_of(X)
    A, b = centred(problem, X)
    expected = np.linalg.lstsq(A, b, rcond=1e-7)[0]
    w = solve_ridge(problem, [alpha])[0]
    assert np.allclose(w, expected, atol=1e-7 * np.abs(expected).max())
    assert np.allclose(w[:3][2], w[8])  # duplicates share alike


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 1e-9, 0.1])
def test_more_features_than_rows(sparse, alpha):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 90)) * (rng.random((40, 90)) < 0.5)
    X[:, 7] = 0.0
    problem = problem_of(csr_array(X) if sparse else X)
    A, b = centred(problem, X)
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    real = s > 1e-9
    expected = Vt[real].T @ (s[real] / (s[real] ** 2 + alpha) * (U[:, real].T @ b))
    w = solve_ridge(problem, [alpha])[0]
    rounding = 1e-14 / alpha if alpha else 0.0  # of a gradient, where only alpha holds the weights
    assert np.allclose(w, expected, rtol=0, atol=1e-5 * np.abs(expected).max() + rounding)
    assert abs(w[7]) < 1e-12


def test_the_optimum_is_where_the_gradient_vanishes():
    X = np.random.default_rng(4).normal(size=(300, 12)).astype(np.float32)
    problem = problem_of(X, offset=True, normalize="query")
    w = solve_ridge(problem, [0.01])[0]
    gradient = problem.design.rmatvec(problem.evaluate(problem.scores(w))[1]) + 0.01 * w
    start = problem.design.rmatvec(problem.evaluate(problem.scores(np.zeros(12)))[1])
    assert np.abs(gradient).max() < 1e-13 * np.abs(start).max() * 100


def test_single_precision_features_that_vary_between_queries():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3))
    X[:, 0] += np.repeat(1e5 * rng.normal(size=40), 10)
    X = X.astype(np.float32)
    problem = problem_of(X)
    A, b = centred(problem, X)
    expected = np.linalg.solve(A.T @ A + 0.1 * np.eye(3), A.T @ b)
    assert np.allclose(solve_ridge(problem, [0.1])[0], expected, rtol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e6])
def test_conjugate_gradients_reach_the_factorised_solution(monkeypatch, sparse, alpha):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(120, 30)) * (rng.random((120, 30)) < 0.4)
    X = csr_array(X) if sparse else X
    problem = problem_of(X, offset=True)
    factorised = solve_ridge(problem, [alpha])[0]
    monkeypatch.setattr(MemoryProblem, "hessian", None)  # would fail if it were asked for
    iterated = solve_ridge(problem, [alpha], largest=29)[0]
    assert np.allclose(iterated, factorised, rtol=1e-6, atol=1e-8 * np.abs(factorised).max())


def test_conjugate_gradients_without_penalty_give_the_least_norm():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 6))
    X = np.hstack([X, X])
    problem = problem_of(X)
    A, b = centred(problem, X)
    assert np.allclose(solve_ridge(problem, [0.0], largest=1)[0], np.linalg.pinv(A) @ b, atol=1e-8)


def test_conjugate_gradients_that_do_not_finish_say_so():
    X = np.random.default_rng(8).normal(size=(60, 6)) * np.logspace(0, 12, 6)
    with (
        warnings.catch_warnings(),
        pytest.warns(ConvergenceWarning, match="raise alpha or bring the features to one scale"),
    ):
        solve_ridge(problem_of(X), [1e-3], tol=1e-15, largest=1)[0]


@pytest.mark.parametrize("n_rows", [200, 20])
def test_many_features_are_solved_without_a_system_where_that_is_sooner(monkeypatch, n_rows):
    monkeypatch.setattr(ridge, "UNKNOWNS_PER_ITERATION", 1)
    X = np.random.default_rng(9).normal(size=(n_rows, 40))
    problem = problem_of(X)
    A, b = centred(problem, X)
    expected = np.linalg.solve(A.T @ A + 0.1 * np.eye(40), A.T @ b)
    found = ridge.iterate_ridge(problem, 0.1, 40)
    assert np.allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_a_badly_scaled_problem_gives_up_early_and_is_factorised(monkeypatch):
    monkeypatch.setattr(ridge, "UNKNOWNS_PER_ITERATION", 1)
    X = np.random.default_rng(10).normal(size=(200, 40)) * np.logspace(-3, 3, 40)
    problem = problem_of(X)
    reads = []
    at = problem.at
    monkeypatch.setattr(problem, "at", lambda w: reads.append(1) or at(w))
    assert ridge.iterate_ridge(problem, 1e-6, 40) is None
    assert len(reads) <= 21  # the start, and at most half of the budget
    A, b = centred(problem, X)
    expected = np.linalg.lstsq(
        np.vstack([A, 1e-3 * np.eye(40)]), np.append(b, np.zeros(40)), rcond=None
    )[0]
    (w,) = solve_ridge(problem, [1e-6])
    assert np.allclose(A @ w, A @ expected, atol=1e-6 * np.abs(b).max())


def test_a_loss_without_curvature_is_refused_by_name():
    problem = problem_of(np.ones((10, 1)))
    problem.loss = HingeLoss()
    with pytest.raises(InputError, match="'ridge' needs curvature, fold of the loss 'hinge'"):
        solve_ridge(problem, [1.0])[0]
