"""Penalties that grow more slowly than ℓ1 for large weights: ℓp below one, log, MCP, adaptive.

A concave function of |w_j| is below its tangents. So at any point there is a weighted ℓ1 penalty,
the *majorant*, that equals it there and is nowhere below, and solving one weighted ℓ1 problem after
another never raises the objective. A shape φ with an infinite slope at zero is smoothed by ε.

======== ============================ =====================
shape    φ(t), t = |w_j|              slope φ′(t)
======== ============================ =====================
lp       (t + ε)^p − ε^p              p (t + ε)^{p−1}
log      log(1 + t/ε)                 1 / (t + ε)
mcp      t − t²/(2γλ), at most γλ/2   max(0, 1 − t/(γλ))
adaptive ∫ of its slope               (t + ε)^{−γ}
======== ============================ =====================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from leanrank._typing import FloatArray
from leanrank.penalties.elastic_net import ElasticNet, OverElasticNet


@dataclass(frozen=True)
class PowerSlope:
    """The shapes with φ′(t) = factor · (t + ε)^{−power}: lp, log and adaptive."""

    power: float
    epsilon: float
    factor: float = 1.0

    def value(self, t: FloatArray, rate: FloatArray) -> FloatArray:
        """Return φ(t)."""
        if self.power == 1.0:
            return self.factor * np.log1p(t / self.epsilon)
        left = 1.0 - self.power
        return self.factor * ((t + self.epsilon) ** left - self.epsilon**left) / left

    def slope(self, t: FloatArray, rate: FloatArray) -> FloatArray:
        """Return φ′(t)."""
        return self.factor * (t + self.epsilon) ** -self.power


@dataclass(frozen=True)
class MinimaxConcave:
    """MCP (Zhang 2010): ℓ1 near zero, constant from γλ on."""

    gamma: float

    def value(self, t: FloatArray, rate: FloatArray) -> FloatArray:
        """Return φ(t)."""
        end = self.gamma * rate
        inside = np.minimum(t, end)
        return inside - np.divide(inside**2, 2.0 * end, out=np.zeros_like(t), where=end > 0)

    def slope(self, t: FloatArray, rate: FloatArray) -> FloatArray:
        """Return φ′(t)."""
        end = self.gamma * rate
        share = np.divide(t, end, out=np.full_like(t, np.inf), where=end > 0)
        return np.maximum(0.0, 1.0 - share)


Shape: TypeAlias = PowerSlope | MinimaxConcave
"""φ(t) and φ′(t) of one weight; ``rate`` is its strength λ_j."""

SHAPES = ("lp", "mcp", "log", "adaptive")


def make_shape(name: str, *, p: float, gamma: float | None, epsilon: float) -> Shape:
    """Return a shape by name; ``gamma`` is by default 100 for "mcp" and 1 for "adaptive".

    >>> make_shape("lp", p=0.5, gamma=1.0, epsilon=0.01).slope(np.array([0.24]), np.ones(1))
    array([1.])
    """
    if name == "lp":
        return PowerSlope(1.0 - p, epsilon, p)
    if name == "mcp":
        return MinimaxConcave(100.0 if gamma is None else gamma)
    return PowerSlope(1.0 if name == "log" or gamma is None else gamma, epsilon)


@dataclass(frozen=True)
class ConcavePenalty(OverElasticNet):
    """Σ_j λ_j φ(|w_j|) + ½ ridge_j w_j², with the permitted signs of an elastic net.

    Attributes
    ----------
    base : ElasticNet
        Strengths λ_j, signs and ridge: this penalty with φ(t) = t.
    shape : Shape
    """

    base: ElasticNet
    shape: Shape

    name: ClassVar[str] = "concave"

    def value(self, w: FloatArray) -> float:
        """Return the penalty at w; infinite where a sign is not permitted."""
        rate = self._rate
        forbidden = np.isinf(np.where(w > 0, self.base.above, self.base.below)) & (w != 0)
        if forbidden.any():
            return np.inf
        cost = rate @ self.shape.value(np.abs(w), rate)
        return float(cost + 0.5 * (self.base.ridge @ (w * w)))

    def majorant(self, w: FloatArray) -> ElasticNet:
        """Return the weighted ℓ1 penalty that equals this one at w, up to a constant."""
        slope = self.shape.slope(np.abs(w), self._rate)
        above, below = (
            np.where(np.isinf(side), np.inf, np.where(np.isinf(side), 0.0, side) * slope)
            for side in (self.base.above, self.base.below)
        )
        return ElasticNet(above, below, self.base.ridge)

    def alpha_max_ratio(self, c: FloatArray) -> float:
        """Return the factor of the penalty from which the model is empty.

        The model is empty if it is so for the plain ℓ1 problem and for the slope at zero.
        """
        slope = self.shape.slope(np.zeros_like(c), np.ones_like(c)).min(initial=1.0)
        return self.base.alpha_max_ratio(c) / slope

    @property
    def _rate(self) -> FloatArray:
        """λ_j; 0 for excluded features, whose weights are zero."""
        rate = np.minimum(self.base.above, self.base.below)
        return np.where(np.isinf(rate), 0.0, rate)
