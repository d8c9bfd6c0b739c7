"""A feature with very many values: coarse codes narrow the search, sorted rows complete it.

A histogram over as many codes as there are values would not fit a near cache. So the sorted rows
are cut into some thousand *bins*, and the histogram over them gives the sum at every edge of a bin
and, from the sum of magnitudes within, how far the sums inside can rise above those at its edges.
Only bins that can hold the best cut are then searched row by row: the result is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray
from leanrank.solvers.boosting._coded_column import TIED, Found, between


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
        _add_up(self.codes, direction, sums)
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
def _add_up(codes, direction, sums):  # type: ignore[no-untyped-def]
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
