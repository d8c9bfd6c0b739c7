"""A feature as codes: the number of thresholds below each value, in one or two bytes.

The sums of a direction over the documents above each threshold are a histogram over the codes and
its running sum from the top: one sequential read, and no sorting after the first time.

A feature with very many values: coarse codes narrow the search, sorted rows complete it.

A histogram over as many codes as there are values would not fit a near cache. So the sorted rows
are cut into some thousand *bins*, and the histogram over them gives the sum at every edge of a bin
and, from the sum of magnitudes within, how far the sums inside can rise above those at its edges.
Only bins that can hold the best cut are then searched row by row: the result is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray

TIED = 1e-12
"""Agreements closer than this are equal: the first one found is taken, whatever the rounding."""

LANES, FEW_CODES = 4, 4_096
"""Histograms filled side by side, and the most codes for which they fit a near cache."""


class Found(NamedTuple):
    """The best cut of a column so far.

    Attributes
    ----------
    agreement : float
    place : int
        The threshold, as numbered by the column.
    missing : int
    bound : float
        No cut of the column has a larger magnitude.
    memo : object
        What ``refine`` of the column needs.
    """

    agreement: float
    place: int
    missing: int
    bound: float
    memo: Any = None


@dataclass(frozen=True)
class CodedColumn:
    """One feature: its thresholds, and the code of each document (of each stored one, if sparse).

    Attributes
    ----------
    thresholds : array
        Ascending. A feature with missing values has −inf among them, below every value.
    codes : array of uint8, uint16 or uint32
        Number of thresholds below the value; for a missing value, one more than there are.
    rows : array of int or None
        The stored rows; None is all.
    zero_code : int
        The code of the rows that are not stored.
    """

    thresholds: FloatArray
    codes: AnyArray
    rows: AnyArray | None
    zero_code: int

    @classmethod
    def of(cls, values: AnyArray, thresholds: FloatArray, rows: AnyArray | None) -> CodedColumn:
        """Code values; NaN is a missing one."""
        codes = np.searchsorted(thresholds, values.astype(np.float64), side="left")
        codes[np.isnan(values)] = len(thresholds) + 1
        return cls(
            thresholds,
            codes.astype(np.min_scalar_type(len(thresholds) + 1)),
            rows,
            int(np.searchsorted(thresholds, 0.0, side="left")),
        )

    def search(self, direction: FloatArray, total: float) -> Found | None:
        """Find the best cut; ``total`` is the sum of the direction."""
        n_codes = len(self.thresholds) + 2
        if n_codes == 2:
            return None
        if self.rows is None:
            sums = _add_up(self.codes, direction, n_codes, LANES if n_codes <= FEW_CODES else 1)
        else:
            sums = np.zeros(n_codes)
            stored = _add_up_rows(self.codes, self.rows, direction, sums)
            sums[self.zero_code] += total - stored
        agreement, place, missing = _best_threshold(sums, TIED)
        return Found(agreement, place, missing, abs(agreement))

    def refine(self, direction: FloatArray, found: Found, floor: float) -> Found:
        """Return the cut: the search was exact."""
        del direction, floor
        return found

    def threshold(self, place: int) -> float:
        """Return the threshold at a place."""
        return float(self.thresholds[place])


def choose_thresholds(
    values: AnyArray,
    weight: FloatArray | None = None,
    *,
    zeros: float = 0.0,
    n_thresholds: int | None = None,
) -> FloatArray:
    """Return a threshold between any two neighbouring values, or the few nearest to quantiles.

    ``zeros`` is the weight of the zeros beside the values given.

    >>> choose_thresholds(np.array([5.0, 1.0, 1.0, 2.0])).tolist()
    [1.5, 3.5]
    >>> choose_thresholds(np.array([5.0, 1.0, 1.0, 2.0]), n_thresholds=1).tolist()
    [1.5]
    """
    if weight is None:
        ordered = np.sort(values)
    else:
        order = np.argsort(values, kind="stable")
        ordered, weight = values[order], weight[order]
    first = np.flatnonzero(np.concatenate((ordered[:1] == ordered[:1], ordered[1:] > ordered[:-1])))
    distinct = ordered[first].astype(np.float64)
    if weight is None:
        mass = np.diff(np.append(first, len(ordered))).astype(np.float64)
    else:
        mass = np.add.reduceat(weight, first) if len(first) else np.empty(0)
    if zeros > 0.0:
        at = int(np.searchsorted(distinct, 0.0))
        if at < len(distinct) and distinct[at] == 0.0:
            mass[at] += zeros
        else:
            distinct, mass = np.insert(distinct, at, 0.0), np.insert(mass, at, zeros)
    low, high = distinct[:-1], distinct[1:]
    if n_thresholds is not None and len(low) > n_thresholds:
        quantiles = np.arange(1, n_thresholds + 1) / (n_thresholds + 1)
        kept = _nearest(np.cumsum(mass)[:-1], quantiles * mass.sum())
        low, high = low[kept], high[kept]
    return between(low, high)


def between(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return a number that is not below ``low`` and is below ``high``, about in the middle.

    >>> between(np.array([1.0, 2.0]), np.array([2.0, 5.0])).tolist()
    [1.5, 3.5]
    """
    middle = 0.5 * low + 0.5 * high  # halves first: the sum may overflow
    return np.where((middle >= low) & (middle < high), middle, low)


def _nearest(places: FloatArray, targets: FloatArray) -> IntArray:
    after = np.minimum(np.searchsorted(places, targets), len(places) - 1)
    before = np.maximum(after - 1, 0)
    closer = np.abs(places[before] - targets) <= np.abs(places[after] - targets)
    return np.unique(np.where(closer, before, after))


@kernel
def _add_up(codes, direction, n_codes, lanes):  # type: ignore[no-untyped-def]
    """Sum by code; lanes hide the latency of additions to the same code."""
    sums = np.zeros((lanes, n_codes))
    whole = 0
    if lanes == 4:
        whole = len(codes) // 4 * 4
        for i in range(0, whole, 4):
            sums[0, codes[i]] += direction[i]
            sums[1, codes[i + 1]] += direction[i + 1]
            sums[2, codes[i + 2]] += direction[i + 2]
            sums[3, codes[i + 3]] += direction[i + 3]
    for i in range(whole, len(codes)):
        sums[0, codes[i]] += direction[i]
    for lane in range(1, lanes):
        for k in range(n_codes):
            sums[0, k] += sums[lane, k]
    return sums[0]


@kernel
def _add_up_rows(codes, rows, direction, sums):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(codes)):
        value = direction[rows[i]]
        sums[codes[i]] += value
        total += value
    return total


@kernel
def _best_threshold(sums, tied):  # type: ignore[no-untyped-def]
    """Search the thresholds from the highest down; the last sum is that of missing values."""
    n = len(sums) - 2
    absent = sums[n + 1]
    above = 0.0
    best, at, missing = 0.0, n - 1, 0
    for k in range(n - 1, -1, -1):
        above += sums[k + 1]
        if abs(above) > abs(best) + tied:
            best, at, missing = above, k, 0
        if absent != 0.0 and abs(above + absent) > abs(best) + tied:
            best, at, missing = above + absent, k, 1
    return best, at, missing


@dataclass(frozen=True)
class SortedColumn:
    """One feature with a cut between any two values.

    Attributes
    ----------
    values : array
        One per document; not copied.
    codes : array of uint16
        The bin of each document; for a missing value, the number of bins.
    order : array of int32
        The documents that count by ascending value; −1 − row for one whose value is above that of
        the one before.
    bin_ptr : array of int64
        Bin b holds ``order[bin_ptr[b]:bin_ptr[b + 1]]``.
    some_missing : bool
    """

    values: AnyArray
    codes: AnyArray
    order: AnyArray
    bin_ptr: IntArray
    some_missing: bool

    @classmethod
    def of(
        cls, values: AnyArray, counted: BoolArray, some_missing: bool, n_bins: int, kept: AnyArray
    ) -> SortedColumn:
        """Sort values; those that do not count make no cut. NaN is a missing value.

        ``kept`` is a view of the same values in the caller's matrix.
        """
        rows = np.flatnonzero(counted)
        rows = rows[np.argsort(values[rows])]
        ordered = values[rows]
        new = np.concatenate((ordered[:1] == ordered[:1], ordered[1:] > ordered[:-1]))
        starts = np.flatnonzero(new)
        even = np.arange(n_bins) * len(rows) // n_bins
        bin_ptr = np.unique(starts[np.searchsorted(starts, even, side="right") - 1])
        codes = np.zeros(len(values), dtype=np.uint16)
        codes[rows] = np.repeat(np.arange(len(bin_ptr)), np.diff(np.append(bin_ptr, len(rows))))
        codes[np.isnan(values)] = len(bin_ptr)
        return cls(
            kept,
            codes,
            np.where(new, -1 - rows, rows).astype(np.int32),
            np.append(bin_ptr, len(rows)).astype(np.int64),
            some_missing,
        )

    def search(self, direction: FloatArray, total: float) -> Found | None:
        """Find the best cut at the edge of a bin, and bound those inside."""
        del total
        sums = np.zeros((len(self.bin_ptr), 2))
        _add_up_bins(self.codes, direction, sums)
        bounds = np.empty(len(self.bin_ptr) - 1)
        agreement, at, missing = _best_edge(sums, self.some_missing, bounds, TIED)
        memo = (sums[:, 0], bounds)
        place = int(self.bin_ptr[at])
        return Found(agreement, place, missing, max(abs(agreement), bounds.max()), memo)

    def refine(self, direction: FloatArray, found: Found, floor: float) -> Found:
        """Search the rows of the bins that may hold a cut above ``floor``."""
        sums, bounds = found.memo
        floor = max(floor, abs(found.agreement)) + TIED
        agreement, place, missing = _best_inside(
            self.order, self.bin_ptr, direction, sums, bounds, floor, TIED
        )
        if place < 0:
            return found
        return Found(agreement, place, missing, abs(agreement))

    def threshold(self, place: int) -> float:
        """Return the threshold below the row at a place."""
        if place == 0:
            return -np.inf
        rows = self.order[place - 1 : place + 1].astype(np.int64)
        low, high = self.values[np.where(rows < 0, -1 - rows, rows)].astype(np.float64)
        return float(between(np.array([low]), np.array([high]))[0])


@kernel
def _add_up_bins(codes, direction, sums):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        value = direction[i]
        c = codes[i]
        sums[c, 0] += value
        sums[c, 1] += abs(value)


@kernel
def _best_edge(sums, some_missing, bounds, tied):  # type: ignore[no-untyped-def]
    """Search the bins from the highest down; the last sums are those of missing values."""
    n = len(sums) - 1
    absent = sums[n, 0]
    above = 0.0
    best, at, missing = 0.0, n - 1, 0
    for b in range(n - 1, -1, -1):
        rise = 0.5 * (sums[b, 1] + sums[b, 0])
        fall = 0.5 * (sums[b, 1] - sums[b, 0])
        high, low = above + rise, above - fall
        bounds[b] = max(max(abs(high), abs(low)), max(abs(high + absent), abs(low + absent)))
        above += sums[b, 0]
        if b > 0 or some_missing:
            if abs(above) > abs(best) + tied:
                best, at, missing = above, b, 0
            if abs(above + absent) > abs(best) + tied:
                best, at, missing = above + absent, b, 1
    return best, at, missing


@kernel
def _best_inside(order, bin_ptr, direction, sums, bounds, floor, tied):  # type: ignore[no-untyped-def]
    n = len(bounds)
    absent = sums[n]
    above = 0.0
    best, place, missing = 0.0, -1, 0
    for b in range(n - 1, -1, -1):
        if bounds[b] > floor:
            running = above
            for p in range(bin_ptr[b + 1] - 1, bin_ptr[b], -1):
                row = order[p]
                if row >= 0:
                    running += direction[row]
                    continue
                running += direction[-1 - row]
                if abs(running) > floor:
                    best, place, missing = running, p, 0
                    floor = abs(running) + tied
                if abs(running + absent) > floor:
                    best, place, missing = running + absent, p, 1
                    floor = abs(running + absent) + tied
        above += sums[b]
    return best, place, missing
