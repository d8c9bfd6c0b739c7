"""Features cut at thresholds, and the search for the cut that agrees best with a direction.

A feature is prepared once as codes: the number of thresholds below each value, in one, two or four
bytes. The sums of a direction over the documents above each threshold are then a histogram over the
codes and its running sum from the top: one sequential read, and no sorting after the first time. Of
very many documents with many values, the thresholds are quantiles of a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leanrank._jit import kernel, kernel_view
from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from leanrank.execution import Executor, row_blocks

TIED = 1e-12
"""Agreements closer than this count as equal, and the first one is taken."""

LANES, FEW_CODES = 4, 4_096
"""Histograms filled side by side, and the most codes for which they fit a near cache."""

BLOCK = 512
"""Values that are coded together."""

EXACT_VALUES, BINS = 1 << 16, 254
"""Values of a feature up to which there is a threshold between any two, and thresholds beyond."""


class Cut(NamedTuple):
    """A feature above a threshold, and whether documents without the feature count as above."""

    agreement: float
    feature: int
    threshold: float
    missing: int


class ThresholdColumns:
    """A matrix cut at thresholds.

    Parameters
    ----------
    X : C-contiguous float array or SciPy CSR array
        NaN is a missing value.
    n_thresholds : int or None
        Most thresholds per feature, near equally spaced quantiles; None: one between any two
        values, or ``BINS`` of a feature with many among more than ``exact_values``.
    executor : Executor
    weight : array, optional
        One weight per document, for the quantiles; values of documents of weight 0 do not count.
    exact_values : int

    Examples
    --------
    >>> from leanrank.execution import Executor
    >>> columns = ThresholdColumns(np.array([[1.0], [2.0], [4.0]]), None, Executor())
    >>> columns.best(np.array([-0.5, 0.0, 0.5]))
    Cut(agreement=0.5, feature=0, threshold=3.0, missing=0)
    """

    def __init__(
        self,
        X: Matrix,
        n_thresholds: int | None,
        executor: Executor,
        weight: FloatArray | None = None,
        *,
        exact_values: int = EXACT_VALUES,
    ) -> None:
        self.n_rows, self.n_features = map(int, X.shape)
        self.executor = executor
        if not isinstance(X, np.ndarray):
            X = X.tocsc()
        self._columns = executor.map(
            lambda j: _cut_column(X, j, n_thresholds, weight, exact_values),
            range(self.n_features),
        )
        self._shares = row_blocks(self.n_features, max(1, self.n_features // 16))

    def best(self, direction: FloatArray) -> Cut | None:
        """Return the cut with the largest absolute sum of ``direction`` over its documents.

        Among equals the first feature is taken. None if no feature has a threshold.
        """
        total = float(direction.sum())

        def search(share: tuple[int, int]) -> list[tuple[float, int, int] | None]:
            return [self._columns[j].search(direction, total) for j in range(*share)]

        found = [one for share in self.executor.map(search, self._shares) for one in share]
        best, feature = None, -1
        for j, one in enumerate(found):
            if one is not None and (best is None or abs(one[0]) > abs(best[0]) + TIED):
                best, feature = one, j
        if best is None:
            return None
        return Cut(best[0], feature, float(self._columns[feature].thresholds[best[1]]), best[2])

    def add(self, cut: Cut, value: float, scores: FloatArray) -> None:
        """Add ``value`` to the scores of the documents of which a cut is true."""
        scores += value * self._columns[cut.feature].above(cut, self.n_rows)


def cut_values(cut: Cut, column: AnyArray) -> AnyArray:
    """Return a mask of the values of which a cut is true.

    >>> cut_values(Cut(0.5, 0, 3.0, 1), np.array([1.0, 4.0, np.nan])).tolist()
    [False, True, True]
    """
    with np.errstate(invalid="ignore"):
        true = np.asarray(column.astype(np.float64) > cut.threshold)
    return true | np.isnan(column) if cut.missing else true


def _cut_column(
    X: Matrix,
    j: int,
    n_thresholds: int | None,
    weight: FloatArray | None,
    exact_values: int,
) -> CodedColumn:
    rows, mine, zeros = None, weight, 0.0
    if isinstance(X, np.ndarray):
        values = np.ascontiguousarray(X[:, j])
    else:
        stored = slice(int(X.indptr[j]), int(X.indptr[j + 1]))
        values, rows = X.data[stored], kernel_view(X.indices[stored])
        zeros = float(X.shape[0] - len(values))
        if weight is not None:
            mine = weight[rows]
            rest = np.count_nonzero(weight) - np.count_nonzero(mine)
            zeros = max(float(weight.sum() - mine.sum()), 1e-300) if rest else 0.0
    absent, taking_part = np.isnan(values), np.True_ if mine is None else mine > 0
    counted = ~absent & taking_part
    some_missing = (absent & taking_part).any() and (zeros > 0.0 or counted.any())
    present, mass = values, mine
    if not counted.all():
        present, mass = values[counted], None if mine is None else mine[counted]
    step = -(-len(present) // exact_values)
    most = BINS - bool(some_missing) if n_thresholds is None else n_thresholds
    if step > 1 and len(np.unique(present[::step])) > most:
        present, mass, zeros = present[::step], None if mass is None else mass[::step], zeros / step
        n_thresholds = most
    thresholds = choose_thresholds(present, mass, zeros=zeros, n_thresholds=n_thresholds)
    if some_missing:
        thresholds = np.concatenate(([-np.inf], thresholds))
    return CodedColumn.of(values, thresholds, rows)


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
        codes = np.empty(len(values), dtype=np.min_scalar_type(len(thresholds) + 1))
        _fill_codes(kernel_view(values), thresholds, codes)
        return cls(thresholds, codes, rows, int(np.searchsorted(thresholds, 0.0)))

    def above(self, cut: Cut, n_rows: int) -> BoolArray:
        """Return a mask of the documents of which a cut of this feature is true."""
        at = int(np.searchsorted(self.thresholds, cut.threshold))
        true = self.codes > at
        if not cut.missing:
            true &= self.codes <= len(self.thresholds)
        if self.rows is None:
            return true
        every = np.full(n_rows, self.zero_code > at)
        every[self.rows] = true
        return every

    def search(self, direction: FloatArray, total: float) -> tuple[float, int, int] | None:
        """Return agreement, threshold and side of missing values of the best cut.

        ``total`` is the sum of the direction.
        """
        n_codes = len(self.thresholds) + 2
        if n_codes == 2:
            return None
        if self.rows is None:
            sums = _add_up(self.codes, direction, n_codes, LANES if n_codes <= FEW_CODES else 1)
        else:
            sums = np.zeros(n_codes)
            stored = _add_up_rows(self.codes, self.rows, direction, sums)
            sums[self.zero_code] += total - stored
        found: tuple[float, int, int] = _best_threshold(sums, TIED)
        return found


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
    distinct = np.unique(values).astype(np.float64)
    if zeros > 0.0:
        distinct = np.union1d(distinct, [0.0])
    low, high = distinct[:-1], distinct[1:]
    if n_thresholds is not None and len(low) > n_thresholds:
        order = np.argsort(values)
        mass = np.cumsum(np.ones(len(order)) if weight is None else weight[order])
        upto = np.append(0.0, mass)[np.searchsorted(values[order], low, side="right")]
        quantiles = np.arange(1, n_thresholds + 1) / (n_thresholds + 1)
        kept = _nearest(upto + zeros * (low >= 0.0), quantiles * (mass[-1] + zeros))
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
def _fill_codes(values, thresholds, codes):  # type: ignore[no-untyped-def]
    """Count the thresholds below each value.

    A block of values is bisected together, so that the reads of different values overlap.
    """
    n = len(thresholds)
    low, block = np.empty(BLOCK, dtype=np.uint32), np.empty(BLOCK)
    for begin in range(0, len(values), BLOCK):
        size = min(BLOCK, len(values) - begin)
        for k in range(size):
            low[k] = 0
            block[k] = values[begin + k]
        length = n
        while length > 0:
            half = (length + 1) // 2
            for k in range(size):
                below = thresholds[np.uint64(low[k]) + np.uint64(half - 1)] < block[k]
                low[k] += np.uint32(half) if below else np.uint32(0)
            length -= half
        for k in range(size):
            codes[begin + k] = n + 1 if np.isnan(block[k]) else low[k]


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
