"""Quadratic models of a loss in the weights of a working set, and their minima.

``GramModel`` has its Hessian at hand. Sweeps find the support and its signs quickly but crawl where
features are collinear; given support and signs, the minimum is one linear system. So the two
alternate: the penalty's own sweeps, then a step on the support by its smooth piece, cut where a
weight would change its sign.

``ColumnModel`` is for long lists and sparse features: where few queries hold many documents, the
Hessian XᵀDX − LᵀR − RᵀL need not be formed. Coordinate descent moves the scores of the documents
instead, and a weight costs its column's entries twice. A sample of the rows is enough, and its
scores fit a cache.

``ProductModel`` has no matrix: each iteration costs products with the working set's columns. Smooth
penalties are solved by conjugate gradients, others by accelerated proximal gradients that start
anew when they overshoot. Where a matrix is possible, it takes over unless they are done first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.designs.base import WeightedColumns
from leanrank.penalties.base import Blocks, Columns, Penalty
from leanrank.problem.base import QuadraticModel


@dataclass(frozen=True)
class GramModel(QuadraticModel):
    """A quadratic model whose Hessian is at hand.

    Attributes
    ----------
    hessian : array
    sampled, exact_diagonal : bool
        Whether a sample of the documents represents all, but for the diagonal.
    accuracy : float
        The minimum is found when the largest move of a sweep, in the metric of the Hessian's
        diagonal, is below that times the first sweep's.
    max_rounds : int
        Most rounds of sweeps and a step.
    fewest_sweeps : int
        Sweeps of a round, or a third of the support if that is more: about the cost of a solution.
    largest_solve : int
        Features up to which the support is solved for.
    """

    hessian: FloatArray
    sampled: bool = False
    exact_diagonal: bool = True
    accuracy: float = 1e-4
    max_rounds: int = 100
    fewest_sweeps: int = 10
    largest_solve: int = 2_048

    def minimise(self, penalty: Penalty, c: FloatArray, w: FloatArray) -> FloatArray:
        """Return the step s that minimises ½ sᵀHs + cᵀs + penalty(w + s)."""
        x, slope, target = w.copy(), c.copy(), -self.accuracy
        hessian = Blocks.whole(self.hessian)
        for _ in range(self.max_rounds):
            n_sweeps = max(self.fewest_sweeps, int(np.count_nonzero(x)) // 3)
            target, done = penalty.sweep_blocks(hessian, slope, x, target, n_sweeps)
            if done:
                break
            self._solve_on_support(penalty, slope, x)
        return x - w

    def damped(self, ridge: FloatArray) -> GramModel:
        """Return the model with ½ Σ_j ridge_j s_j² added."""
        return replace(self, hessian=self.hessian + np.diag(ridge))

    def _solve_on_support(self, penalty: Penalty, slope: FloatArray, x: FloatArray) -> None:
        """Move to the minimum for the present signs, dropping weights that reach zero."""
        from scipy.linalg import lapack

        for _ in range(8):
            piece = penalty.piece(x)
            support = piece.support
            if len(support) == 0 or len(support) > self.largest_solve:
                return
            now = x[support]
            force = slope[support] + piece.slope
            system = self.hessian[np.ix_(support, support)]
            diagonal = np.diag_indices(len(support))
            if piece.curvature.ndim == 1:
                system[diagonal] += piece.curvature
            else:
                system += piece.curvature
            system[diagonal] *= 1.0 + 1e-12
            _, direction, fault = lapack.dposv(system, -force, lower=True, overwrite_a=True)
            if fault or not force @ direction < 0.0:
                return
            crossing = piece.kinked & (now * (now + direction) < 0.0)
            reach = np.where(crossing, -now / np.where(crossing, direction, 1.0), 1.0)
            t = float(reach.min())
            moved = now + t * direction
            moved[reach == t] *= 0.0 if t < 1.0 else 1.0
            step = moved - now
            rise = step @ self.hessian[support]
            if not piece.quadratic:
                whole = np.zeros_like(x)
                whole[support] = step
                model = float(step @ (slope[support] + 0.5 * rise[support]))
                if model + penalty.change(x, whole) > 0.0:
                    return
            slope += rise
            x[support] = moved
            if t == 1.0:
                return


@dataclass(frozen=True)
class ColumnModel(QuadraticModel):
    """A quadratic model whose Hessian is given by columns.

    Attributes
    ----------
    columns : Columns
    sampled : bool
        Whether some of the documents represent all.
    accuracy : float
        The minimum is found when the largest move of a sweep is below that times the first's.
    max_sweeps : int
    """

    columns: Columns
    sampled: bool = False
    accuracy: float = 0.1
    max_sweeps: int = 60

    @classmethod
    def build(
        cls, weighed: WeightedColumns, left: FloatArray, right: FloatArray, *, sampled: bool
    ) -> ColumnModel:
        """Make the model of AᵀA − LᵀR − RᵀL + diag(extra), factors of shape (terms, features)."""
        values, rows, starts, ends, squares, extra, n_rows = weighed
        diagonal = squares + extra - 2.0 * np.sum(left * right, axis=0)
        by_feature = np.ascontiguousarray(left.T), np.ascontiguousarray(right.T)
        return cls(
            Columns(values, rows, starts, ends, n_rows, *by_feature, extra, diagonal), sampled
        )

    def minimise(self, penalty: Penalty, c: FloatArray, w: FloatArray) -> FloatArray:
        """Return the step s that minimises ½ sᵀHs + cᵀs + penalty(w + s)."""
        return penalty.sweep_columns(self.columns, c, w, self.accuracy, self.max_sweeps)

    def damped(self, ridge: FloatArray) -> ColumnModel:
        """Return the model with ½ Σ_j ridge_j s_j² added."""
        extra, diagonal = self.columns.extra + ridge, self.columns.diagonal + ridge
        return replace(self, columns=self.columns._replace(extra=extra, diagonal=diagonal))


TINY = float(np.finfo(np.float64).tiny)

CAUTION = 1.5
"""Curvature to allow for, as a multiple of that along the last move."""

MOST_SWEEPS = 30
"""Sweeps over small blocks, whose minimum need not be exact; set by ``benchmarks waits``."""


@dataclass(frozen=True)
class ProductModel(QuadraticModel):
    """A quadratic model whose Hessian can only be multiplied.

    Attributes
    ----------
    product : callable
        Returns H times a vector.
    sampled, exact_diagonal : bool
        Whether a sample of the documents represents all, but for the diagonal.
    accuracy : float
        Relative residual, or size of a move, at which to stop.
    max_products : int
    squares : array, optional
        Sums of squares of the columns, to which their curvature is about proportional.
    blocks : Blocks, optional
        About the blocks of H along its diagonal, up to a factor.
    instead : callable, optional
        Makes the model whose step is taken if this one is not done by then.
    """

    product: Callable[[FloatArray], FloatArray]
    sampled: bool = False
    exact_diagonal: bool = True
    accuracy: float = 1e-2
    max_products: int = 200
    squares: FloatArray | None = None
    blocks: Blocks | None = None
    instead: Callable[[], QuadraticModel] | None = None

    lasting = False

    def minimise(self, penalty: Penalty, c: FloatArray, w: FloatArray) -> FloatArray:
        """Return the step s that minimises ½ sᵀHs + cᵀs + penalty(w + s), roughly."""
        ridge = penalty.quadratic_part
        if ridge is None:
            step, done = self._proximal_gradients(penalty, c, w)
        else:
            step, done = self._conjugate_gradients(c + ridge * w, ridge)
        return step if done or self.instead is None else self.instead().minimise(penalty, c, w)

    def damped(self, ridge: FloatArray) -> ProductModel:
        """Return the model with ½ Σ_j ridge_j s_j² added."""
        instead = self.instead
        return replace(
            self,
            product=lambda v: self.product(v) + ridge * v,
            instead=None if instead is None else lambda: instead().damped(ridge),
        )

    def _conjugate_gradients(self, force: FloatArray, ridge: FloatArray) -> tuple[FloatArray, bool]:
        """Return the step, and whether its residual is small enough."""
        from scipy.sparse.linalg import LinearOperator, cg

        n, unit = len(force), self._units(force, ridge)

        def regularised(v: FloatArray) -> FloatArray:
            moved = unit * np.ravel(v)
            return unit * (self.product(moved) + ridge * moved)

        operator: Any = LinearOperator((n, n), matvec=regularised, dtype=np.float64)
        step, fault = cg(operator, -unit * force, rtol=self.accuracy, maxiter=self.max_products)
        return unit * np.asarray(step), fault == 0

    def _units(self, force: FloatArray, ridge: FloatArray) -> FloatArray:
        """Return units of the features in which H + ridge has about equal diagonal entries."""
        if self.squares is None:
            return np.ones(len(force))
        along = force / self.squares
        curvature = float(along @ self.product(along)) / max(float(along @ force), TINY)
        total = curvature * self.squares + ridge
        return np.where(total > 0.0, 1.0 / np.sqrt(np.maximum(total, TINY)), 1.0)

    def _proximal_gradients(
        self, penalty: Penalty, c: FloatArray, w: FloatArray
    ) -> tuple[FloatArray, bool]:
        """Return the step, and whether the last move was small enough.

        Accelerated, from the start again when it overshoots. The metric is that of the blocks,
        times a factor that is raised until it bounds the curvature along the move.
        """
        blocks = Blocks(np.ones((len(c), 1)), np.arange(len(c)))
        blocks = blocks if self.blocks is None else self.blocks
        x, y, inertia, factor = w, w, 1.0, 1.0
        of_x = of_y = np.zeros_like(c)  # H times the way from w
        first = -1.0
        for _ in range(self.max_products):
            new = _lowest(penalty, blocks._replace(rows=factor * blocks.rows), c + of_y, y)
            of_new = self.product(new - w)
            move = new - y
            squared = float(move @ (blocks @ move))
            curvature = float(move @ (of_new - of_y))
            unknown = first < 0.0 and curvature < factor * squared / CAUTION**2
            if curvature > factor * squared or (unknown and curvature > 0.0):
                factor = CAUTION * curvature / squared
                continue
            size = np.sqrt(factor * squared)
            first = size if first < 0.0 else first
            if size <= self.accuracy * first:
                return new - w, True
            if float((blocks @ (y - new)) @ (new - x)) > 0.0:  # the momentum points uphill
                inertia, x, y, of_x, of_y = 1.0, new, new, of_new, of_new
                continue
            faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * inertia * inertia))
            share = (inertia - 1.0) / faster
            y, of_y = new + share * (new - x), of_new + share * (of_new - of_x)
            x, of_x, inertia = new, of_new, faster
        return x - w, False


def _lowest(penalty: Penalty, hessian: Blocks, slope: FloatArray, x: FloatArray) -> FloatArray:
    """Return about the minimum of a quadratic with that slope at x plus the penalty."""
    x = x.copy()
    penalty.sweep_blocks(hessian, slope.copy(), x, -1e-2, MOST_SWEEPS)
    return x
