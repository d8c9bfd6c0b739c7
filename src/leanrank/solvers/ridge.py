"""Quadratic losses with an ℓ2² penalty: one linear system."""

from __future__ import annotations

import numpy as np

from leanrank._typing import FloatArray
from leanrank.losses.base import require
from leanrank.solvers.problem import Problem

LARGEST_FACTORISATION = 8_192
"""Features up to which the normal equations are formed; beyond, conjugate gradients."""


def solve_ridge(problem: Problem, alpha: float, *, tol: float = 1e-10) -> FloatArray:
    """Minimise a quadratic loss plus alpha/2 · ‖w‖².

    The optimum solves (H + alpha·I) w = −∇(0), H and ∇ those of the loss.

    Parameters
    ----------
    problem : Problem
        Its loss must be quadratic in the scores.
    alpha : float
        At zero, the solution of least norm.
    tol : float
        Relative residual at which conjugate gradients stop; not used up to 8,192 features.
    """
    from scipy import linalg

    require(problem.loss, "ridge", "curvature", "fold")
    n = problem.n_features
    start = problem.scores(np.zeros(n))
    gradient = problem.design.rmatvec(problem.evaluate(start)[1])
    if n > LARGEST_FACTORISATION:
        return _conjugate_gradients(problem, alpha, gradient, tol)
    block = problem.design.take(np.arange(n))
    system = problem.hessian(block, start)
    if alpha == 0:
        return np.asarray(linalg.lstsq(system, -gradient)[0])
    system[np.diag_indices(n)] += alpha
    try:
        return np.asarray(linalg.solve(system, -gradient, assume_a="pos"))
    except linalg.LinAlgError:  # alpha is below the rounding of H
        return np.asarray(linalg.lstsq(system, -gradient)[0])


def _conjugate_gradients(
    problem: Problem, alpha: float, gradient: FloatArray, tol: float
) -> FloatArray:
    from scipy.sparse.linalg import LinearOperator, cg

    n = problem.n_features

    def product(v: FloatArray) -> FloatArray:
        moved = problem.design.rmatvec(problem.evaluate(problem.scores(np.ravel(v)))[1])
        return moved - gradient + alpha * np.ravel(v)

    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    solution, _ = cg(operator, -gradient, rtol=tol, maxiter=10 * n)
    return np.asarray(solution)
