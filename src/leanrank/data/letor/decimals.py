"""Reading decimal numbers to the last bit.

A decimal is w × 10^q with a whole number w. Three ways lead to the nearest double, tried in turn:

1. w and 10^|q| are both exact doubles: one multiplication or division rounds once, hence correctly.
2. w times a 128-bit approximation of 10^q, whose error is known: when both ends of the error
   interval round to the same double, that is the answer.
3. Anything else is *hard* and left to Python's ``float``: more than 18 digits, exact ties between
   two doubles, and the ends of their range.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray

EXACT, ROUNDED, HARD, NOT_A_NUMBER = 0, 1, 2, 3

LOWEST_POWER, HIGHEST_POWER = -342, 308
_KEPT = 100_000_000_000_000_000  # digits are taken while w is below: w stays under 10^18
_EXPONENT_CAP = 100_000


@lru_cache(maxsize=1)
def powers_of_ten() -> AnyArray:
    """Return the leading 128 bits of 10^q, rounded down, where products may be finite."""
    rows = []
    for q in range(LOWEST_POWER, HIGHEST_POWER + 1):
        if q >= 0:
            power = 5**q
            shift = power.bit_length() - 128
            bits = power >> shift if shift > 0 else power << -shift
        else:
            power = 5**-q
            bits = (1 << (127 + power.bit_length())) // power
            if bits.bit_length() > 128:
                bits >>= 1
        rows.append((bits >> 64, bits & (2**64 - 1)))
    table = np.array(rows, dtype=np.uint64)
    table.flags.writeable = False
    return table


@kernel
def read_decimal(text: AnyArray, at: int, powers: AnyArray) -> tuple[int, float, int]:
    """Read the number that starts at ``at``; return where it ends, its value and how it was got.

    The text must go on beyond the number (with a line break), so the end is never tested for.
    """
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    w: Any = np.int64(0)  # what uses a plain 0 is compiled for that number as well
    q: Any = 0
    lost = False
    start = at
    while True:
        digit = np.int64(text[at]) - 48
        if digit < 0 or digit > 9:
            break
        if w < _KEPT:
            w = w * 10 + digit
        else:
            q += 1
            lost |= digit != 0
        at += 1
    n_digits = at - start
    if text[at] == 46:
        at += 1
        start = at
        while True:
            digit = np.int64(text[at]) - 48
            if digit < 0 or digit > 9:
                break
            if w < _KEPT:
                w = w * 10 + digit
                q -= 1
            else:
                lost |= digit != 0
            at += 1
        n_digits += at - start
    if n_digits == 0:
        return at, 0.0, NOT_A_NUMBER
    if text[at] == 101 or text[at] == 69:
        at += 1
        below = text[at] == 45
        if below or text[at] == 43:
            at += 1
        start = at
        power: Any = 0
        while True:
            digit = np.int64(text[at]) - 48
            if digit < 0 or digit > 9:
                break
            if power < _EXPONENT_CAP:
                power = power * 10 + digit
            at += 1
        if at == start:
            return at, 0.0, NOT_A_NUMBER
        if power >= _EXPONENT_CAP and w != 0:
            return at, 0.0, HARD
        q += -power if below else power
    if w == 0:
        value = 0.0
        how = EXACT
    elif w <= 9007199254740992 and -22 <= q <= 22 and not lost:
        if q == 0:
            value = float(w)
            how = EXACT
        elif q < 0:
            value = float(w) / TENS[-q]
            how = ROUNDED
        else:
            value = float(w) * TENS[q]
            how = ROUNDED
    elif lost:
        value, how = 0.0, HARD
    else:
        value, how = scale_decimal(w, q, powers)
    if negative:
        value = -value
    return at, value, how


@kernel
def scale_decimal(w: Any, q: Any, powers: AnyArray) -> tuple[float, int]:
    """Round w × 10^q for 0 < w < 2^63; HARD when the error interval straddles a rounding point."""
    if q < LOWEST_POWER or q > HIGHEST_POWER:
        return 0.0, HARD
    one = np.uint64(1)
    factor = np.uint64(w)
    shift: Any = 0
    while factor >> np.uint64(63) == 0:
        factor <<= one
        shift += 1
    power_high = powers[q - LOWEST_POWER, 0]
    power_low = powers[q - LOWEST_POWER, 1]
    # high:low is the product in units of 2^64, too small by less than 2: the rest of
    # factor × power_low, and factor × what the 128 bits leave out of the power.
    high = multiply_high(factor, power_high)
    low = factor * power_high
    carry = multiply_high(factor, power_low)
    low += carry
    if low < carry:
        high += one
    dropped = np.uint64(10) + (high >> np.uint64(63))
    mantissa = high >> dropped
    rest = high & ((one << dropped) - one)
    half = one << (dropped - one)
    if rest >= half:
        if rest == half and low == 0:
            return 0.0, HARD
        mantissa += one
    elif rest == half - one and low >= np.uint64(0xFFFFFFFFFFFFFFFE):
        return 0.0, HARD
    # 10^q = power × 2^(floor(q log2 10) − 127); 217706 / 2^16 is log2 10 to enough digits.
    exponent: Any = ((q * 217706) >> 16) + 1 - shift + np.int64(dropped)
    if exponent < -1074 or exponent > 970:
        return 0.0, HARD
    return math.ldexp(float(mantissa), exponent), ROUNDED


@kernel
def multiply_high(a: Any, b: Any) -> Any:
    """Return the upper 64 of the 128 bits of a product."""
    bits = np.uint64(32)
    mask = np.uint64(0xFFFFFFFF)
    a_high, a_low = a >> bits, a & mask
    b_high, b_low = b >> bits, b & mask
    middle = a_high * b_low + ((a_low * b_low) >> bits)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> bits) + (other >> bits)


TENS = np.array([10.0**i for i in range(23)])
