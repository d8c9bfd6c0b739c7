"""Quadratic losses with an ℓ2² penalty: one linear system."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from leanrank._typing import FloatArray, require
from leanrank.errors import InputError, overflow, warn
from leanrank.problem.base import Problem
from leanrank.solvers.least_squares.centred import Centred

LARGEST_FACTORISATION = 8_192
"""Features (or, in the dual, documents) up to which a system is formed and factorised."""

UNKNOWNS_PER_ITERATION = 25
"""Unknowns of a system for which forming it takes as long as one conjugate gradient iteration."""

FEWEST_ITERATIONS = 20
"""Smallest number of iterations worth trying."""


EPSILON = float(np.finfo(np.float64).eps)


def solve_ridge(
    problem: Problem,
    alphas: Sequence[float],
    *,
    tol: float = 1e-10,
    largest: int = LARGEST_FACTORISATION,
) -> FloatArray:
    """Minimise a quadratic loss plus alpha/2 · ‖w‖² for one alpha or several, one row each.

    The optimum solves (H + alpha·I) w = −∇(0), H and ∇ those of the loss. One H serves all alphas.

    Parameters
    ----------
    problem : Problem
        Its loss must be quadratic in the scores.
    alphas : sequence of float
        At zero, the solution of least norm.
    tol : float
        Relative residual at which conjugate gradients stop.
    largest : int
        Features up to which the system is factorised where conjugate gradients would take longer.
    """
    require(problem.loss, "ridge", "curvature", "fold")
    n = problem.n_features
    if n == 0:
        return np.zeros((len(alphas), 0))
    if n > largest:
        return np.array([_iterate_to_the_end(problem, alpha, tol) for alpha in alphas])
    if len(alphas) == 1:
        w = iterate_ridge(problem, alphas[0], n, tol=tol)
        if w is not None:
            return w[None]
    problem.at(np.zeros(n))
    gradient, system = problem.gradient(), problem.focused_hessian()
    diagonal, coefs = np.diag(system).copy(), []
    for alpha in alphas:
        system[np.diag_indices(n)] = diagonal + alpha
        solve = _factorise(system)
        w = solve(-gradient)
        # Forming H squares the condition of X; one step of iterative refinement recovers most of
        # the lost digits.
        problem.at(w)
        coefs.append(w - solve(problem.gradient() + alpha * w))
    return np.array(coefs)


def iterate_ridge(
    problem: Problem, alpha: float, n_unknowns: int, *, tol: float = 1e-10
) -> FloatArray | None:
    """Solve by conjugate gradients if that is faster than to form a system; else return None.

    An iteration reads X twice, and features of a well-conditioned problem need a few dozen. So many
    are taken as cost less than a system of ``n_unknowns``; after a quarter of them, and at every
    quarter, what is gained so far tells whether to go on.
    """
    budget = n_unknowns // UNKNOWNS_PER_ITERATION
    if budget < FEWEST_ITERATIONS:
        return None
    w, finished = _conjugate_gradients(problem, alpha, tol, budget, hopeless=budget // 4)
    return w if finished else None


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
        if rcond > 10 * EPSILON:
            return lambda right: np.asarray(lapack.dpotrs(factor, right, lower=True)[0])
    values, vectors = eigh(system)
    sure = values > 10 * len(values) * EPSILON * np.abs(values).max(initial=0.0)
    part = vectors[:, sure]
    return lambda right: np.asarray(part @ ((part.T @ right) / values[sure]))


def _iterate_to_the_end(problem: Problem, alpha: float, tol: float) -> FloatArray:
    from sklearn.exceptions import ConvergenceWarning

    n = problem.n_features
    w, finished = _conjugate_gradients(problem, alpha, tol, 10 * n, hopeless=0)
    if not finished:
        warn(
            f"conjugate gradients stopped after {10 * n} iterations above tol={tol}: raise alpha "
            "or bring the features to one scale",
            ConvergenceWarning,
        )
    return w


def _conjugate_gradients(
    problem: Problem, alpha: float, tol: float, max_iter: int, hopeless: int
) -> tuple[FloatArray, bool]:
    """Solve (H + alpha·I) w = −∇(0); return w and whether its relative residual is below tol.

    Gives up after ``hopeless`` iterations, and at every multiple, when the digits gained so far
    would not add up to ``tol`` within ``max_iter``; 0: never.
    """
    n = problem.n_features
    w = np.zeros(n)
    problem.at(w)
    start = problem.gradient()
    if not np.isfinite(start).all():
        raise InputError(overflow("RankRLS"))
    residual = -start
    direction, squared = residual.copy(), float(residual @ residual)
    enough, reach = tol * tol * squared, 0.0
    for n_iter in range(1, max_iter + 1):
        if squared <= enough:
            return w, True
        # H v is a difference of gradients: v as long as the first step loses the fewest digits.
        unit = reach / float(np.linalg.norm(direction)) if reach else 1.0
        problem.at(unit * direction)
        product = (problem.gradient() - start) / unit + alpha * direction
        curvature = float(direction @ product)
        if not curvature > 0.0:
            return w, False
        step = squared / curvature
        w += step * direction
        residual -= step * product
        reach = reach or float(np.linalg.norm(w))
        last, squared = squared, float(residual @ residual)
        direction = residual + (squared / last) * direction
        if hopeless and n_iter % hopeless == 0:
            digits = np.log(squared / float(start @ start)) / np.log(tol * tol)
            if digits < 0.8 * n_iter / max_iter:
                return w, False
    return w, squared <= enough
