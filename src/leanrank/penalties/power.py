"""Powers of weights above one, for which a coordinate step has a closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import BoolArray, FloatArray
from leanrank.errors import InputError
from leanrank.penalties.base import Penalty
from leanrank.penalties.elastic_net import ElasticNet, penalty_factors

POWERS = (4 / 3, 3 / 2, 3.0, 4.0)


@dataclass(frozen=True)
class PowerPenalty(Penalty):
    """Σ_j rate_j·|w_j|^power."""

    rate: FloatArray
    power: float

    name: ClassVar[str] = "power"

    @classmethod
    def build(
        cls, alpha: float, power: float, n_features: int, factors: Any = None
    ) -> PowerPenalty:
        """Make alpha · Σ f_j |w_j|^power."""
        near = [p for p in POWERS if abs(p - power) < 1e-9]
        if not near:
            raise InputError(
                f"power={power!r} has no closed form here: use 4/3, 3/2, 3 or 4 (1 and 2 are "
                "l1_ratio=1 and 0)"
            )
        if not alpha > 0:
            raise InputError("a power penalty needs alpha above 0")
        f = penalty_factors(factors, n_features)
        return cls(np.where(np.isinf(f), np.inf, alpha * np.where(np.isinf(f), 0.0, f)), near[0])

    @property
    def excluded(self) -> BoolArray:
        """Features that may not enter."""
        return np.isinf(self.rate)

    @property
    def free(self) -> BoolArray:
        """Features without any penalty."""
        return self.rate == 0

    def value(self, w: FloatArray) -> float:
        """Evaluate at w."""
        used = w != 0
        return float(self.rate[used] @ np.abs(w[used]) ** self.power)

    def dual_scale(self, c: FloatArray) -> float:
        """Every gradient is dual feasible."""
        del c
        return 1.0

    def conjugate(self, c: FloatArray) -> float:
        """The conjugate at −c; free and excluded features do not count."""
        counted = ~self.free & ~self.excluded
        rate, dual_power = self.rate[counted], self.power / (self.power - 1.0)
        return float(
            np.sum(
                (self.power - 1.0) * rate * (np.abs(c[counted]) / (self.power * rate)) ** dual_power
            )
        )

    def alpha_max_ratio(self, c: FloatArray) -> float:
        """Infinite: a power above one lets every feature in that has a slope."""
        return np.inf if np.any(c[~self.free & ~self.excluded]) else 0.0

    def only_free(self) -> ElasticNet:
        """Return the penalty that shuts out every feature but the free ones."""
        shut = np.where(self.free, 0.0, np.inf)
        return ElasticNet(shut, shut, np.zeros(len(shut)))

    def residual(self, w: FloatArray, c: FloatArray) -> FloatArray:
        """Return the slope of loss + penalty in each weight that may enter."""
        rate = np.where(self.excluded, 0.0, self.rate)
        slope = c + rate * self.power * np.sign(w) * np.abs(w) ** (self.power - 1.0)
        return np.where(self.excluded, 0.0, np.abs(slope))

    def permitted(self, w: FloatArray) -> FloatArray:
        """Return w with zeros for the weights that are forbidden."""
        return np.where(self.excluded, 0.0, w)

    def coordinate_table(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]:
        """What the coordinate step needs: above, below, ridge, rate and power."""
        zero = np.zeros(len(self.rate))
        shut = np.where(self.excluded, np.inf, 0.0)
        return shut, shut, zero, np.where(self.excluded, 0.0, self.rate), self.power
