"""The sparse group lasso: features enter by group, and within a group not all of them.

    Σ_g ν_g ‖w_g‖₂ + Σ_j (above_j·max(w_j, 0) + below_j·max(−w_j, 0)) + ½ Σ_g ρ_g ‖w_g‖²

A group is zero if the norm of its gradients, soft-thresholded by the ℓ1 part, is at most ν_g. With
groups of one feature this is an elastic net.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.errors import InputError
from leanrank.execution import cached_property
from leanrank.penalties.base import Blocks, Groups, SmoothPiece
from leanrank.penalties.coordinate import sweep_blocks
from leanrank.penalties.elastic_net import (
    ElasticNet,
    OverElasticNet,
    feasible_share,
    penalty_factors,
)


@dataclass(frozen=True)
class GroupPenalty(OverElasticNet):
    """The sum of a norm of each group, an ℓ1 part and a ridge.

    Attributes
    ----------
    base : ElasticNet
        The ℓ1 part, signs and ridge; the ridge is the same for all weights of a group.
    group : array of int64
        The group of each feature, numbered from 0.
    nu : array
        Strength ν_g of each group's norm.
    """

    base: ElasticNet
    group: IntArray
    nu: FloatArray

    name: ClassVar[str] = "groups"

    @classmethod
    def build(
        cls,
        alpha: float,
        l1_ratio: float,
        n_features: int,
        groups: Any,
        *,
        group_ratio: float = 1.0,
        factors: Any = None,
        signs: Any = None,
    ) -> GroupPenalty:
        """Make the penalty from one group per feature.

        alpha · [l1_ratio · ((1 − group_ratio) Σ f_j |w_j| + group_ratio Σ_g φ_g ‖w_g‖₂)
        + (1 − l1_ratio)/2 Σ_g φ_g/√n_g ‖w_g‖²], φ_g = √(Σ_{j∈g} f_j²): √n_g if all f_j are one.

        Parameters
        ----------
        alpha, l1_ratio : float
        n_features : int
        groups : array-like
            One name or number per feature; features with the same one form a group.
        group_ratio : float
            Share of the norms of groups; 0 is an elastic net.
        factors, signs : array-like, optional
            As for ``ElasticNet.build``. A factor of 0 takes a feature out of its group.
        """
        f = penalty_factors(factors, n_features)
        counted = (f > 0) & np.isfinite(f)
        own = group_numbers(groups, n_features)
        alone = own.max(initial=-1) + 1 + np.arange(n_features)  # one per feature
        _, group = np.unique(np.where(counted, own, alone), return_inverse=True)
        squares = np.bincount(group, np.where(counted, f, 0.0) ** 2)
        sizes = np.bincount(group)
        size = np.sqrt(squares)
        lasso = ElasticNet.build(alpha * l1_ratio * (1.0 - group_ratio), 1.0, n_features, f, signs)
        ridge = alpha * (1.0 - l1_ratio) * (size / np.sqrt(sizes))[group]
        base = ElasticNet(lasso.above, lasso.below, ridge)
        return cls(base, group.astype(np.int64), alpha * l1_ratio * group_ratio * size)

    @cached_property
    def groups(self) -> Groups:
        """The groups and their members."""
        order = np.argsort(self.group, kind="stable").astype(np.int64)
        sizes = np.bincount(self.group, minlength=len(self.nu))
        return Groups(self.nu, order, np.concatenate(([0], np.cumsum(sizes))).astype(np.int64))

    @property
    def always(self) -> BoolArray:
        """Features that any non-zero gradient moves: those of groups without a norm."""
        return self.base.always & (self.nu == 0)[self.group]

    @property
    def free(self) -> BoolArray:
        """Features without any penalty."""
        return self.always & (self.base.ridge == 0)

    def times(self, factor: float) -> GroupPenalty:
        """Return the penalty times a factor."""
        return GroupPenalty(self.base.times(factor), self.group, self.nu * factor)

    def restrict(self, features: IntArray) -> GroupPenalty:
        """Return the penalty of some features, where the others of their groups are zero."""
        kept, group = np.unique(self.group[features], return_inverse=True)
        return GroupPenalty(self.base.restrict(features), group.astype(np.int64), self.nu[kept])

    def together(self, chosen: BoolArray) -> BoolArray:
        """Return the chosen features and all others of their groups that are not excluded."""
        touched = np.bincount(self.group[chosen], minlength=len(self.nu)) > 0
        return touched[self.group] & (chosen | ~self.excluded)

    def value(self, w: FloatArray) -> float:
        """Return the penalty at w; infinite where a sign is not permitted."""
        return self.base.value(w) + float(self.nu @ self._norms(w))

    def change(self, w: FloatArray, step: FloatArray) -> float:
        """Return the change of the penalty by a step, computed without cancellation."""
        before, after = self._norms(w), self._norms(w + step)
        rise = np.bincount(self.group, step * (2.0 * w + step), minlength=len(self.nu))
        both = before + after
        grown = np.divide(rise, both, out=np.zeros_like(rise), where=both > 0)
        return self.base.change(w, step) + float(self.nu @ grown)

    def ratio(self, c: FloatArray) -> FloatArray:
        """Return the factor of the penalty from which the group of each feature is zero."""
        ratio: FloatArray = _ratios(np.abs(c), self.base.threshold(c), self.groups)
        return ratio[self.group]

    def pull(self, w: FloatArray, c: FloatArray) -> FloatArray:
        """Return ``ratio`` for each zero weight: above 1, it moves away from zero.

        In a group that moves, only weights above their ℓ1 threshold do.
        """
        alone = self.base.ratio(np.where(w == 0, c, 0.0))
        used = (self._norms(w) > 0)[self.group]
        group = self.ratio(np.where(used, 0.0, c))
        return np.where(used, alone, np.where(alone > 1.0, group, np.minimum(alone, group)))

    def dual_scale(self, c: FloatArray) -> float:
        """Return the largest a ≤ 1 such that a·c is dual feasible; free features do not count."""
        return feasible_share(self, self.base.ridge, c)

    def conjugate(self, c: FloatArray) -> float:
        """Return the conjugate at −c for dual feasible c; free features do not count."""
        soft = self.base.ridge > 0
        over = np.maximum(0.0, self._norms(np.where(soft, self.base.excess(c), 0.0)) - self.nu)
        ridge = self._ridge
        return float(np.sum(np.divide(over**2, 2.0 * ridge, out=0.0 * over, where=ridge > 0)))

    def residual(self, w: FloatArray, c: FloatArray) -> FloatArray:
        """Return the distance of 0 from the subdifferential of loss + penalty, for each weight."""
        norm = self._norms(w)[self.group]
        nu = self.nu[self.group]
        lean = np.divide(nu * w, norm, out=np.zeros_like(w), where=norm > 0)
        pull = self.base.excess(c)
        length = self._norms(pull)[self.group]
        left = np.divide(length - nu, length, out=np.zeros_like(w), where=length > nu)
        return np.where(norm > 0, self.base.residual(w, c + lean), pull * left)

    def prox(self, z: FloatArray, lipschitz: float) -> FloatArray:
        """Shrink each weight, then each group."""
        shrunk = self.base.prox(z, lipschitz)
        length = (lipschitz + self._ridge) * self._norms(shrunk)
        left = np.divide(length - self.nu, length, out=0.0 * length, where=length > self.nu)
        return shrunk * left[self.group]

    def sweep_blocks(
        self, hessian: Blocks, slope: FloatArray, x: FloatArray, target: float, n_sweeps: int
    ) -> tuple[float, bool]:
        """Lower the objective one group at a time, by steps from bounds on the curvature."""
        rates = self.base.coordinate_table()._replace(ridge=self._ridge)  # of each group
        target, done = sweep_blocks(*hessian, slope, x, rates, self.groups, target, n_sweeps)
        return float(target), bool(done)

    def piece(self, x: FloatArray) -> SmoothPiece:
        """Return the smooth expansion at x of the groups in use; norms have a curvature."""
        norm = self._norms(x)
        used = (x != 0) | (self.always & ~self.excluded)
        flat = self.base.piece(np.where(used, x, 0.0))
        keep = used[flat.support]
        support = flat.support[keep]
        group, now = self.group[support], x[support]
        rate = np.divide(self.nu, norm, out=0.0 * norm, where=norm > 0)[group]
        direction = np.divide(now, norm[group], out=0.0 * now, where=norm[group] > 0)
        same = group[:, None] == group[None, :]
        curvature = np.where(same, -np.outer(rate * direction, direction), 0.0)
        curvature[np.diag_indices(len(support))] += rate + flat.curvature[keep]
        kinked = flat.kinked[keep]
        return SmoothPiece(support, flat.slope[keep] + rate * now, curvature, kinked, False)

    @cached_property
    def _ridge(self) -> FloatArray:
        """The ridge of each group."""
        out = np.zeros(len(self.nu))
        out[self.group] = self.base.ridge
        return out

    def _norms(self, v: FloatArray) -> FloatArray:
        """Return the norm of each group's part of a vector."""
        return np.sqrt(np.bincount(self.group, v * v, minlength=len(self.nu)))


def group_numbers(groups: Any, n_features: int) -> IntArray:
    """Return the group of each feature, numbered from 0, from names or numbers."""
    names = np.asarray(groups)
    if names.shape != (n_features,):
        raise InputError(
            f"groups has shape {names.shape}: a penalty of groups needs groups=, one group per "
            f"feature, for {n_features} features"
        )
    return np.unique(names, return_inverse=True)[1]


@kernel
def _ratios(c: FloatArray, threshold: FloatArray, groups: Groups) -> FloatArray:
    """Return for each group the least κ with ‖max(c − κ·threshold, 0)‖ ≤ κ·ν.

    The difference of the two sides is convex and decreasing in κ, so Newton's steps from 0 approach
    its root from the left.
    """
    nu, order, starts = groups
    out = np.zeros(len(nu))
    for g in range(len(nu)):
        at = 0.0
        for _ in range(200):
            squares, slope = 0.0, 0.0
            for k in range(starts[g], starts[g + 1]):
                j = order[k]
                over = c[j] - at * threshold[j] if at > 0.0 or threshold[j] < np.inf else c[j]
                if c[j] > 0.0 and over > 0.0 and threshold[j] < np.inf:
                    squares += over * over
                    slope += over * threshold[j]
            length = np.sqrt(squares)
            rest = length - at * nu[g]
            if rest <= 1e-14 * length or length == 0.0:
                break
            fall = slope / length + nu[g]
            if fall == 0.0:
                at = np.inf
                break
            at += rest / fall
        out[g] = at
    return out
