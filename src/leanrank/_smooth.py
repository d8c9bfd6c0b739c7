"""Exponentials and logarithms that the compiler can vectorise.

The functions of the C library take one number per call; these are plain arithmetic on a chunk,
several times as fast, with errors in the last bit or two.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from leanrank._jit import kernel
from leanrank._typing import FloatArray

CHUNK = 1024
"""Numbers per call: two such arrays fit the fastest cache."""

_ROUND = 6755399441055744.0  # 1.5 · 2⁵²: adding it rounds to a whole number, held in the low bits
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10

# contract: a · b + c in one rounding, the same in every thread
_chunk_kernel = partial(kernel, fastmath={"contract"})
_inlined = numba.njit(inline="always")


@_chunk_kernel
def exp_chunk(values: FloatArray, n: int) -> None:
    """Replace the first n values by their exponentials: 0 below −708, and e^709 above 709."""
    for i in range(n):
        values[i] = _exp(values[i])


@_chunk_kernel
def sigmoid_chunk(z: FloatArray, n: int) -> None:
    """Replace the first n values by 1 / (1 + e^−z)."""
    for i in range(n):
        e = _exp(-abs(z[i]))
        z[i] = (1.0 if z[i] > 0.0 else e) / (1.0 + e)


@_chunk_kernel
def softplus_chunk(z: FloatArray, terms: FloatArray, n: int) -> None:
    """Fill the first n terms with log(1 + e^z), and replace z by the derivative of that."""
    for i in range(n):
        e = _exp(-abs(z[i]))
        terms[i] = max(z[i], 0.0) + _log1p(e)
        z[i] = (1.0 if z[i] > 0.0 else e) / (1.0 + e)


def _polynomial(coefficients: list[float]) -> Any:
    """Return a polynomial for kernels, by Horner's rule from the highest power down.

    It is written in LLVM: in Python, each step would take a millisecond to compile, in every kernel
    that uses it.
    """

    @intrinsic
    def polynomial(context: Any, x: Any) -> Any:
        del context, x

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del context, signature
            number = ir.DoubleType()
            value = number(coefficients[0])
            for coefficient in coefficients[1:]:
                value = builder.fadd(builder.fmul(value, arguments[0]), number(coefficient))
            return value

        return types.float64(types.float64), generate

    return polynomial


_exp_series = _polynomial([1.0 / math.factorial(n) for n in range(13, -1, -1)])
_artanh_series = _polynomial([1.0 / n for n in range(33, 0, -2)])


@_inlined
def _exp(x: float) -> float:
    """Compute 2^k · e^r with |r| ≤ ln 2 / 2, e^r by its series."""
    inside = -708.0 if x < -708.0 else x
    inside = 709.0 if inside > 709.0 else inside
    shifted = inside * 1.4426950408889634 + _ROUND
    k = shifted - _ROUND
    r = (inside - k * _LN2_HIGH) - k * _LN2_LOW
    series = _exp_series(r)
    exponent = np.int64((np.float64(shifted).view(np.int64) + np.int64(1023)) << np.int64(52))
    return 0.0 if x < -708.0 else series * exponent.view(np.float64)


@_inlined
def _log1p(e: float) -> float:
    """Compute log(1 + e) for e in [0, 1], as 2 artanh(e / (2 + e)) by its series."""
    s = e / (2.0 + e)
    return 2.0 * s * _artanh_series(s * s)
