"""ℓ1, ℓ2² and the elastic net, with a factor and a permitted sign for each feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.errors import InputError
from leanrank.execution import cached_property
from leanrank.penalties import coordinate as kernels
from leanrank.penalties.base import Blocks, Columns, Groups, Penalty, Rates, SmoothPiece


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """Σ_j above_j·max(w_j, 0) + below_j·max(−w_j, 0) + ½ ridge_j·w_j².

    An infinite ``above`` forbids positive weights, an infinite ``below`` negative ones.
    """

    above: FloatArray
    below: FloatArray
    ridge: FloatArray

    name: ClassVar[str] = "elastic net"

    @classmethod
    def build(
        cls, alpha: float, l1_ratio: float, n_features: int, factors: Any = None, signs: Any = None
    ) -> ElasticNet:
        """Return alpha · [l1_ratio Σ f_j |w_j| + (1 − l1_ratio)/2 Σ f_j w_j²].

        Parameters
        ----------
        alpha, l1_ratio : float
        n_features : int
        factors : array-like, optional
            f_j ≥ 0; 0 leaves a feature unpenalised, inf leaves it out.
        signs : array-like, optional
            1 forbids negative weights, −1 positive ones, 0 neither.
        """
        f = penalty_factors(factors, n_features)
        excluded = np.isinf(f)
        finite = np.where(excluded, 0.0, f)
        lasso = np.where(excluded, np.inf, alpha * l1_ratio * finite)
        sign = directions("signs", signs, n_features)
        return cls(
            above=np.where(sign < 0, np.inf, lasso),
            below=np.where(sign > 0, np.inf, lasso),
            ridge=alpha * (1.0 - l1_ratio) * finite,
        )

    @cached_property
    def excluded(self) -> BoolArray:
        """Features that may not enter."""
        return np.isinf(self.above) & np.isinf(self.below)

    @cached_property
    def always(self) -> BoolArray:
        """Features that any non-zero gradient moves away from zero."""
        return (self.above == 0) | (self.below == 0)

    @cached_property
    def free(self) -> BoolArray:
        """Features without any penalty."""
        return self.always & (self.ridge == 0)

    def times(self, factor: float) -> ElasticNet:
        """Return the penalty times a factor."""
        return ElasticNet(self.above * factor, self.below * factor, self.ridge * factor)

    def restrict(self, features: IntArray) -> ElasticNet:
        """Return the penalty of some features, where the others are zero."""
        return ElasticNet(self.above[features], self.below[features], self.ridge[features])

    def value(self, w: FloatArray) -> float:
        """Return the penalty at w; infinite where a sign is not permitted."""
        nonzero = w != 0
        rate = np.where(w > 0, self.above, self.below)[nonzero]
        return float(rate @ np.abs(w[nonzero]) + 0.5 * (self.ridge @ (w * w)))

    def excess(self, c: FloatArray) -> FloatArray:
        """Return the excess of a gradient c over the threshold of a zero weight, at least 0."""
        return np.maximum(0.0, np.maximum(c - self.below, -c - self.above))

    def threshold(self, c: FloatArray) -> FloatArray:
        """Return the threshold on the side to which a gradient c moves a zero weight."""
        return np.where(c > 0, self.below, self.above)

    def ratio(self, c: FloatArray) -> FloatArray:
        """Return the factor of the penalty from which each weight is zero at gradient c."""
        threshold = self.threshold(c)
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(c == 0, 0.0, np.abs(c) / np.where(c == 0, 1.0, threshold))

    def change(self, w: FloatArray, step: FloatArray) -> float:
        """Return the change of the penalty by a step, computed without cancellation."""
        moved = w + step
        new = np.where(moved == 0, 0.0, np.where(moved > 0, self.above, self.below))
        old = np.where(w == 0, 0.0, np.where(w > 0, self.above, self.below))
        crossing = np.sign(moved) * np.sign(w) < 0
        with np.errstate(invalid="ignore"):
            along = np.where(w == 0, new * np.abs(step), old * np.sign(w) * step)
            across = new * np.abs(moved) - old * np.abs(w)
        return float(
            np.sum(np.where(crossing, across, along) + self.ridge * (w + 0.5 * step) * step)
        )

    def dual_scale(self, c: FloatArray) -> float:
        """Return the largest a ≤ 1 such that a·c is dual feasible; free features do not count."""
        return feasible_share(self, self.ridge, c)

    def conjugate(self, c: FloatArray) -> float:
        """Return the conjugate at −c for dual feasible c; free features do not count."""
        soft = self.ridge > 0
        excess = self.excess(c)[soft]
        return float(np.sum(excess * excess / (2.0 * self.ridge[soft])))

    def residual(self, w: FloatArray, c: FloatArray) -> FloatArray:
        """Return the distance of 0 from the subdifferential of loss + penalty, for each weight."""
        slope = c + self.ridge * w
        return np.where(
            w > 0,
            np.abs(slope + np.where(w > 0, self.above, 0.0)),
            np.where(w < 0, np.abs(slope - np.where(w < 0, self.below, 0.0)), self.excess(slope)),
        )

    def permitted(self, w: FloatArray) -> FloatArray:
        """Return w with zeros for the weights that are forbidden."""
        return np.where(np.isinf(np.where(w > 0, self.above, self.below)), 0.0, w)

    def sweep_blocks(
        self, hessian: Blocks, slope: FloatArray, x: FloatArray, target: float, n_sweeps: int
    ) -> tuple[float, bool]:
        """Lower the objective one weight at a time."""
        each = np.arange(len(x) + 1)  # one group per weight
        alone = Groups(np.zeros(len(x)), each[:-1], each)
        rates = self.coordinate_table()
        target, done = kernels.sweep_blocks(*hessian, slope, x, rates, alone, target, n_sweeps)
        return float(target), bool(done)

    def sweep_columns(
        self, columns: Columns, c: FloatArray, w: FloatArray, accuracy: float, n_sweeps: int
    ) -> FloatArray:
        """Minimise one weight at a time."""
        rates = self.coordinate_table()
        step: FloatArray = kernels.sweep_columns(columns, c, w, rates, accuracy, n_sweeps)
        return step

    def piece(self, x: FloatArray) -> SmoothPiece:
        """Return the smooth expansion at x: the slopes for its signs, and the ridge."""
        kinked = self.above + self.below > 0
        support = np.flatnonzero((x != 0) | ~kinked)
        now, ridge = x[support], self.ridge[support]
        slope = ridge * now + np.where(now > 0, self.above[support], -self.below[support])
        return SmoothPiece(support, slope, ridge, kinked[support], True)

    def prox(self, z: FloatArray, lipschitz: float) -> FloatArray:
        """Shrink each weight by its threshold."""
        pull = lipschitz * z
        with np.errstate(invalid="ignore"):  # inf − inf where a weight is excluded
            low = np.where(pull < -self.below, pull + self.below, 0.0)
            reduced = np.where(pull > self.above, pull - self.above, low)
        return reduced / (lipschitz + self.ridge)

    @property
    def quadratic_part(self) -> FloatArray | None:
        """The ridge if there is no ℓ1 part and no sign, else None."""
        return None if self.above.any() or self.below.any() else self.ridge

    def coordinate_table(self) -> Rates:
        """Return the rates of each weight."""
        return Rates(self.above, self.below, self.ridge)

    def only_free(self) -> ElasticNet:
        """Return the penalty that excludes every feature but the free ones."""
        return self.without_others(self.free)

    def without_others(self, free: BoolArray) -> ElasticNet:
        """Return the penalty that is 0 for the given weights and excludes all others."""
        others = np.where(free, 0.0, np.inf)
        above, below = np.maximum(self.above, others), np.maximum(self.below, others)
        return ElasticNet(above, below, np.zeros(len(others)))


class OverElasticNet(Penalty):
    """A penalty that has the signs, excluded and free weights of an elastic net, ``base``."""

    base: ElasticNet

    @property
    def excluded(self) -> BoolArray:
        """Features that may not enter."""
        return self.base.excluded

    @property
    def free(self) -> BoolArray:
        """Features without any penalty."""
        return self.base.free

    def permitted(self, w: FloatArray) -> FloatArray:
        """Return w with zeros for the weights that are forbidden."""
        return self.base.permitted(w)

    def only_free(self) -> ElasticNet:
        """Return the penalty that excludes every feature but the free ones."""
        return self.base.without_others(self.free)


def feasible_share(penalty: Penalty, ridge: FloatArray, c: FloatArray) -> float:
    """Return the largest a ≤ 1 such that a·c exceeds no threshold of a weight without ridge."""
    hard = (ridge == 0) & ~penalty.free
    return float(1.0 / max(1.0, penalty.ratio(np.where(hard, c, 0.0)).max(initial=0.0)))


def penalty_factors(factors: Any, n_features: int) -> FloatArray:
    """Return checked factors, one per feature; by default 1."""
    if factors is None:
        return np.ones(n_features)
    f = np.asarray(factors, dtype=np.float64)
    if f.shape != (n_features,) or np.isnan(f).any() or (f < 0).any():
        raise InputError(
            f"penalty_factors must be {n_features} numbers, at least 0 (0 leaves a feature "
            "unpenalised, inf leaves it out)"
        )
    return f


def directions(name: str, values: Any, n_features: int) -> FloatArray:
    """Return checked signs, −1, 0 or 1 per feature; one number is for all features."""
    signs = np.asarray(0.0 if values is None else values, dtype=np.float64)
    if signs.shape not in ((), (n_features,)) or not np.isin(signs, (-1.0, 0.0, 1.0)).all():
        raise InputError(
            f"{name} must be {n_features} numbers: 1 (not negative, never falls), -1 (not "
            "positive, never rises) or 0 (either)"
        )
    return np.broadcast_to(signs, n_features)


@dataclass(frozen=True)
class L1Ball(Penalty):
    """The constraint Σ|w_j| ≤ radius.

    >>> L1Ball(2, 1.0).permitted(np.array([3.0, -1.0])).tolist()
    [0.75, -0.25]
    """

    n_features: int
    radius: float

    name: ClassVar[str] = "l1-ball"

    @property
    def excluded(self) -> BoolArray:
        """No weight is excluded."""
        return np.zeros(self.n_features, dtype=bool)

    free = excluded

    def value(self, w: FloatArray) -> float:
        """Return 0, or infinity outside the ball."""
        return 0.0 if np.abs(w).sum() <= self.radius * (1.0 + 1e-12) else np.inf

    def permitted(self, w: FloatArray) -> FloatArray:
        """Return w scaled into the ball."""
        size = float(np.abs(w).sum())
        return w.copy() if size <= self.radius else w * (self.radius / size)

    def alpha_max_ratio(self, c: FloatArray) -> float:
        """Return 0: only a radius of 0 gives an empty model."""
        return 0.0
