"""The scaling of one feature, and its inverse to the last bit."""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """A global scaler of one feature: (x − shift) / divisor, rounded as the scaler does."""

    shift: float
    divisor: float

    def __call__(self, x: float) -> float:
        return (x - self.shift) / self.divisor

    def largest_not_above(self, threshold: float) -> float:
        """Return the largest number that, once scaled, is not above a threshold.

        Scaling is monotone also after rounding, so that bisection over the floating-point numbers
        in their order finds it: a document at a threshold stays on its side.

        >>> Scale(1.0, 2.0).largest_not_above(3.0)
        7.0
        """
        low, high = _ordinal(-sys.float_info.max), _ordinal(sys.float_info.max)
        while high - low > 1:
            middle = (low + high) // 2
            if self(_from_ordinal(middle)) > threshold:
                high = middle
            else:
                low = middle
        return _from_ordinal(low)


def _ordinal(x: float) -> int:
    """Number the floating-point numbers in their order."""
    bits: int = struct.unpack("<q", struct.pack("<d", x))[0]
    return bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF)


def _from_ordinal(at: int) -> float:
    bits = at if at >= 0 else -at | -0x8000000000000000
    x: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return x
