"""Exponentials and logarithms written so that the compiler can take eight at a time.

The C library's functions are called one number at a time; these are plain arithmetic on a chunk,
several times faster, and exact to the last bit or two.
"""

from __future__ import annotations

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
"""Numbers in one call: two such arrays stay in the fastest cache."""

_ROUND = 6755399441055744.0  # 1.5 · 2⁵²: adding it rounds to a whole number, held in the low bits
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10

# contract: a · b + c in one rounding, the same in every thread
_chunk_kernel = partial(kernel, fastmath={"contract"})
_inlined = numba.njit(inline="always")


@_chunk_kernel
def exp_chunk(values: FloatArray, n: int) -> None:
    """Replace the first n values by their exponentials; below −708 comes 0, above 709 no more."""
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


@_inlined
def _exp(x: float) -> float:
    """Compute 2^k · e^r with |r| ≤ ln 2 / 2, e^r by its series."""
    inside = -708.0 if x < -708.0 else x
    inside = 709.0 if inside > 709.0 else inside
    shifted = inside * 1.4426950408889634 + _ROUND
    k = shifted - _ROUND
    r = (inside - k * _LN2_HIGH) - k * _LN2_LOW
    series = 1.0 / 6227020800.0
    series = series * r + 1.0 / 479001600.0
    series = series * r + 1.0 / 39916800.0
    series = series * r + 1.0 / 3628800.0
    series = series * r + 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    power = _as_float((_as_bits(shifted) + np.int64(1023)) << np.int64(52))
    return 0.0 if x < -708.0 else series * power


@_inlined
def _log1p(e: float) -> float:
    """Compute log(1 + e) for e in [0, 1], as 2 artanh(e / (2 + e)) by its series."""
    s = e / (2.0 + e)
    square = s * s
    series = 1.0 / 33.0
    series = series * square + 1.0 / 31.0
    series = series * square + 1.0 / 29.0
    series = series * square + 1.0 / 27.0
    series = series * square + 1.0 / 25.0
    series = series * square + 1.0 / 23.0
    series = series * square + 1.0 / 21.0
    series = series * square + 1.0 / 19.0
    series = series * square + 1.0 / 17.0
    series = series * square + 1.0 / 15.0
    series = series * square + 1.0 / 13.0
    series = series * square + 1.0 / 11.0
    series = series * square + 1.0 / 9.0
    series = series * square + 1.0 / 7.0
    series = series * square + 1.0 / 5.0
    series = series * square + 1.0 / 3.0
    series = series * square + 1.0
    return 2.0 * s * series


@intrinsic
def _as_float(context: Any, bits: Any) -> Any:
    """Read the bits of an integer as a float."""
    del context, bits

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def _as_bits(context: Any, number: Any) -> Any:
    """Read the bits of a float as an integer."""
    del context, number

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate
