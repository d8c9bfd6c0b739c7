"""The base class of penalties: convex functions of the weights.

A penalty does not know the data. It determines which weights are zero at a gradient, bounds the
objective from below by its conjugate, and minimises the sum of itself and a quadratic function, by
compiled sweeps over coordinates or groups. Solvers contain no thresholds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray, Part


class SmoothPiece(NamedTuple):
    """A smooth expansion of a penalty at weights, valid while no weight crosses zero.

    Attributes
    ----------
    support : array of int64
        The weights that move.
    slope : array
        The penalty's gradient there.
    curvature : array of shape (support,) or (support, support)
        The penalty's Hessian there; one number per weight if it is diagonal.
    kinked : array of bool
        Which weights of the support must not cross zero.
    quadratic : bool
        Whether the penalty is exactly quadratic until a weight reaches zero.
    """

    support: IntArray
    slope: FloatArray
    curvature: FloatArray
    kinked: BoolArray
    quadratic: bool


class Columns(NamedTuple):
    """H = AᵀA − LᵀR − RᵀL + diag(extra), with the columns of A compressed.

    Column j of A is ``values[starts[j]:ends[j]]`` at ``rows[starts[j]:ends[j]]``; ``left`` and
    ``right`` have one row per feature; ``diagonal`` is that of H.
    """

    values: AnyArray
    rows: AnyArray
    starts: IntArray
    ends: IntArray
    n_rows: int
    left: FloatArray
    right: FloatArray
    extra: FloatArray
    diagonal: FloatArray


class Blocks(NamedTuple):
    """A matrix of blocks along its diagonal: row j has the entries from column ``first[j]`` on.

    ``rows`` are as long as the largest block, and 0 after a shorter one.
    """

    rows: FloatArray
    first: IntArray

    @classmethod
    def whole(cls, matrix: FloatArray) -> Blocks:
        """Return a matrix that is one block."""
        return cls(matrix, np.zeros(len(matrix), dtype=np.int64))

    def __matmul__(self, v: FloatArray) -> FloatArray:
        """Multiply a vector."""
        width = self.rows.shape[1]
        near = np.append(v, np.zeros(width))[self.first[:, None] + np.arange(width)]
        product: FloatArray = np.einsum("ji,ji->j", self.rows, near)
        return product


class Rates(NamedTuple):
    """The penalty Σ_j above_j·max(x_j, 0) + below_j·max(−x_j, 0) + ½ ridge_j·x_j²."""

    above: FloatArray
    below: FloatArray
    ridge: FloatArray


class Groups(NamedTuple):
    """The strength of each group's norm, the features by group, and the start of each group."""

    nu: FloatArray
    order: IntArray
    starts: IntArray


class Penalty(Part, ABC):
    """A function of the weights.

    c is a gradient of the loss. A weight without any penalty is *free*: dual feasibility requires
    that its gradient is zero, which no scaling achieves.
    """

    kind: ClassVar[str] = "penalty"

    @property
    @abstractmethod
    def excluded(self) -> BoolArray:
        """Weights that stay zero for all data."""

    @property
    @abstractmethod
    def free(self) -> BoolArray:
        """Weights without any penalty."""

    @abstractmethod
    def value(self, w: FloatArray) -> float:
        """Return the penalty at w; infinite where a sign is not permitted."""

    @abstractmethod
    def permitted(self, w: FloatArray) -> FloatArray:
        """Return w with zeros for the weights that are forbidden."""

    def alpha_max_ratio(self, c: FloatArray) -> float:
        """Return the factor of the penalty from which all weights but the free ones are zero."""
        penalised = np.where(self.free | self.excluded, 0.0, c)
        return float(self.ratio(penalised).max(initial=0.0))

    def only_free(self) -> Penalty:
        """Return the penalty that excludes every weight but the free ones."""
        raise NotImplementedError

    # operations of convex penalties, for certificates

    def dual_scale(self, c: FloatArray) -> float:
        """Return the largest a ≤ 1 such that a·c is dual feasible; free weights do not count."""
        raise NotImplementedError

    def conjugate(self, c: FloatArray) -> float:
        """Return the conjugate at −c for dual feasible c; free weights do not count."""
        raise NotImplementedError

    def residual(self, w: FloatArray, c: FloatArray) -> FloatArray:
        """Return the distance of 0 from the subdifferential of loss + penalty, for each weight."""
        raise NotImplementedError

    def free_residual(self, w: FloatArray, c: FloatArray, scale: FloatArray) -> float:
        """Return the largest residual of a free weight, divided by the scale of the weight."""
        return float((self.residual(w, c) / scale)[self.free].max(initial=0.0))

    # operations that Newton's method needs

    @property
    def always(self) -> BoolArray:
        """Weights that any non-zero gradient moves away from zero, so that all models have them."""
        raise NotImplementedError

    def times(self, factor: float) -> Penalty:
        """Return the penalty times a factor."""
        raise NotImplementedError

    def restrict(self, features: IntArray) -> Penalty:
        """Return the penalty of some features, where the others are zero."""
        raise NotImplementedError

    def together(self, chosen: BoolArray) -> BoolArray:
        """Return the chosen features and those that must be chosen with them."""
        return chosen

    def ratio(self, c: FloatArray) -> FloatArray:
        """Return the factor of the penalty from which each weight is zero at gradient c."""
        raise NotImplementedError

    def pull(self, w: FloatArray, c: FloatArray) -> FloatArray:
        """Return ``ratio`` for each zero weight: above 1, it moves away from zero."""
        return self.ratio(np.where(w == 0, c, 0.0))

    def change(self, w: FloatArray, step: FloatArray) -> float:
        """Return the change of the penalty by a step, computed without cancellation."""
        return self.value(w + step) - self.value(w)

    def sweep_blocks(
        self, hessian: Blocks, slope: FloatArray, x: FloatArray, target: float, n_sweeps: int
    ) -> tuple[float, bool]:
        """Lower ½xᵀHx + … + penalty(x) in place by sweeps; ``slope`` is the quadratic's at x.

        Returns the size of a move at which to stop, and whether moves became that small. A
        ``target`` of −a means a times the largest move of the first sweep.
        """
        raise NotImplementedError

    def piece(self, x: FloatArray) -> SmoothPiece:
        """Return the smooth expansion at x, for an exact step on the support."""
        raise NotImplementedError

    def sweep_columns(
        self, columns: Columns, c: FloatArray, w: FloatArray, accuracy: float, n_sweeps: int
    ) -> FloatArray:
        """Minimise ½sᵀHs + cᵀs + penalty(w + s) over the step s, H given by columns."""
        raise NotImplementedError

    def prox(self, z: FloatArray, lipschitz: float) -> FloatArray:
        """Minimise lipschitz/2·‖x − z‖² + penalty(x) over x."""
        raise NotImplementedError

    @property
    def quadratic_part(self) -> FloatArray | None:
        """The diagonal ρ if the penalty is ½Σρ_j w_j², else None."""
        return None

    # operations that other methods need

    def coordinate_table(self) -> Rates:
        """Return the rates of a penalty that is a sum over single weights."""
        raise NotImplementedError

    def majorant(self, w: FloatArray) -> Penalty:
        """Return a convex penalty equal to this one at w and nowhere below, up to a constant."""
        raise NotImplementedError


CERTIFICATE = ("dual_scale", "conjugate", "residual")
"""Operations that a certificate needs."""

NEWTON = (*CERTIFICATE, "always", "times", "restrict", "ratio", "sweep_blocks", "piece")
"""Operations that Newton's method needs."""
