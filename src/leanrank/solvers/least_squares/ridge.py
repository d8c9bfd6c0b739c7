"""Quadratic losses with an ℓ2² penalty: one linear system."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from leanrank._part import require
from leanrank._typing import FloatArray
from leanrank.errors import InputError, overflow, warn
from leanrank.problem.base import Problem
from leanrank.solvers.least_squares.centred import Centred

LARGEST_FACTORISATION = 8_192
"""Features (or, in the dual, documents) up to which a system is formed and factorised."""


def solve_ridge(
    problem: Problem, alpha: float, *, tol: float = 1e-10, largest: int = LARGEST_FACTORISATION
) -> FloatArray:
    """Minimise a quadratic loss plus alpha/2 · ‖w‖².

    The optimum solves (H + alpha·I) w = −∇(0), H and ∇ those of the loss.

    Parameters
    ----------
    problem : Problem
        Its loss must be quadratic in the scores.
    alpha : float
        At zero, the solution of least norm.
    tol : float
        Relative residual at which conjugate gradients stop.
    largest : int
        Features up to which the system is factorised; beyond, conjugate gradients.
    """
    require(problem.loss, "ridge", "curvature", "fold")
    n = problem.n_features
    if n == 0:
        return np.zeros(0)
    problem.at(np.zeros(n))
    gradient = problem.gradient()
    if n > largest:
        return _conjugate_gradients(problem, alpha, gradient, tol)
    system = problem.focused_hessian()
    system[np.diag_indices(n)] += alpha
    solve = _factorise(system)
    w = solve(-gradient)
    # Forming H squares the condition of X; one step of iterative refinement recovers most of the
    # lost digits.
    problem.at(w)
    return w - solve(problem.gradient() + alpha * w)


def solve_ridge_path(
    problem: Problem, alphas: Iterable[float], *, largest: int = LARGEST_FACTORISATION
) -> FloatArray:
    """Minimise a quadratic loss plus alpha/2 · ‖w‖² for several alphas, one row each.

    One Hessian and its eigenvectors serve all of them; each model is refined once, as in
    ``solve_ridge``.
    """
    from scipy.linalg import eigh

    n = problem.n_features
    if not 0 < n <= largest:
        return np.array([solve_ridge(problem, alpha, largest=largest) for alpha in alphas])
    require(problem.loss, "ridge", "curvature", "fold")
    problem.at(np.zeros(n))
    gradient, system = problem.gradient(), problem.focused_hessian()
    check_products(system)
    values, vectors = eigh(system)
    values = np.maximum(values, 0.0)
    coefs = []
    for alpha in alphas:
        w = solve_by_spectrum(values, vectors, vectors.T @ -gradient, alpha)
        problem.at(w)
        rest = vectors.T @ (problem.gradient() + alpha * w)
        coefs.append(w - solve_by_spectrum(values, vectors, rest, alpha))
    return np.array(coefs)


def solve_by_spectrum(
    values: FloatArray, vectors: FloatArray, target: FloatArray, alpha: float
) -> FloatArray:
    """Compute V (target / (s + alpha)); at alpha 0 the solution of least norm.

    There, eigenvalues that may be rounding are left out.
    """
    floor = 0.0
    if alpha == 0.0:
        floor = 10 * len(values) * np.finfo(np.float64).eps * values.max(initial=0.0)
    s = values + alpha
    solution: FloatArray = vectors @ np.divide(
        target, s, out=np.zeros_like(target), where=s > floor
    )
    return solution


def solve_ridge_dual(centred: Centred, alpha: float) -> FloatArray:
    """Minimise ½‖Aw − b‖² + alpha/2 · ‖w‖² for few documents and many features.

    w = Aᵀ a with (AAᵀ + alpha·I) a = b; at alpha 0 the solution of least norm.
    """
    gram = centred.project(centred.root[:, None] * centred.products())
    system = 0.5 * (gram + gram.T)
    system[np.diag_indices(len(system))] += alpha
    return centred.adjoint(centred.project(_factorise(system)(centred.target)))


def check_products(system: FloatArray) -> None:
    """Reject products of features that are not finite."""
    if not np.isfinite(system).all():
        raise InputError(overflow("RankRLS"))


def _factorise(system: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the solver of a system; of many solutions it returns the one of least norm."""
    from scipy.linalg import eigh, lapack

    check_products(system)
    factor, fault = lapack.dpotrf(system, lower=True)
    if not fault:
        size = np.abs(system).sum(axis=0).max(initial=0.0)
        rcond = lapack.dpocon(factor, size, uplo="L")[0]
        if rcond > 10 * np.finfo(np.float64).eps:
            return lambda right: np.asarray(lapack.dpotrs(factor, right, lower=True)[0])
    values, vectors = eigh(system)
    sure = values > 10 * len(values) * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0)
    part = vectors[:, sure]
    return lambda right: np.asarray(part @ ((part.T @ right) / values[sure]))


def _conjugate_gradients(
    problem: Problem, alpha: float, gradient: FloatArray, tol: float
) -> FloatArray:
    from scipy.sparse.linalg import LinearOperator, cg
    from sklearn.exceptions import ConvergenceWarning

    n = problem.n_features

    def product(v: FloatArray) -> FloatArray:
        problem.at(np.ravel(v))
        return problem.gradient() - gradient + alpha * np.ravel(v)

    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    solution, unfinished = cg(operator, -gradient, rtol=tol, maxiter=10 * n)
    if unfinished:
        warn(
            f"conjugate gradients stopped after {10 * n} iterations above tol={tol}: raise alpha "
            "or bring the features to one scale",
            ConvergenceWarning,
        )
    return np.asarray(solution)
