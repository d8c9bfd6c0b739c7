"""Features cut at thresholds: which feature above which threshold agrees best with a direction.

Every feature is replaced once by *codes*: the number of its thresholds that are below the value of
a document, in one or two bytes where that is enough. The sums of a direction over the documents
above each threshold are then a histogram over the codes and its running sum from the top: one
sequential read of the codes, and no sorting after the first time.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leanrank._jit import kernel, kernel_view
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.execution import Executor, row_blocks

TIED = 1e-12
"""Agreements closer than this are equal: the first one found is taken, whatever the rounding."""


LANES, FEW_CODES = 4, 4_096
"""Histograms that are filled side by side, and codes up to which they stay in a near cache."""


class Cut(NamedTuple):
    """A feature above a threshold, and what is said of documents without the feature."""

    agreement: float
    feature: int
    threshold: float
    missing: int


@dataclass(frozen=True)
class _Column:
    """One feature: its thresholds, and the code of each document (of each stored one, if sparse).

    Attributes
    ----------
    thresholds : array
        Ascending. A feature with missing values has −inf among them: any value there is.
    codes : array of uint8, uint16 or uint32
        How many thresholds are below the value; one more than there are for a missing value.
    rows : array of int or None
        The rows that are stored; None is all of them.
    zero_code : int
        The code of the rows that are not.
    """

    thresholds: FloatArray
    codes: AnyArray
    rows: AnyArray | None
    zero_code: int


class ThresholdColumns:
    """A matrix cut at thresholds.

    Parameters
    ----------
    X : C-contiguous float array or SciPy CSR array
        NaN is a missing value.
    n_thresholds : int or None
        The most thresholds a feature may have, near equally spaced quantiles; None is one between
        any two values.
    executor : Executor
    weight : array, optional
        One weight a document, for the quantiles; values of documents of weight 0 do not count.

    Examples
    --------
    >>> from leanrank.execution import SerialExecutor
    >>> columns = ThresholdColumns(np.array([[1.0], [2.0], [4.0]]), None, SerialExecutor())
    >>> columns.best(np.array([-0.5, 0.0, 0.5]))
    Cut(agreement=0.5, feature=0, threshold=3.0, missing=0)
    """

    def __init__(
        self,
        X: Matrix,
        n_thresholds: int | None,
        executor: Executor,
        weight: FloatArray | None = None,
    ) -> None:
        self.n_rows, self.n_features = map(int, X.shape)
        self.executor = executor
        if not isinstance(X, np.ndarray):
            X = X.tocsc()
        self._X = X
        self._columns: list[_Column] = executor.map(
            lambda j: _cut_column(X, j, n_thresholds, weight), range(self.n_features)
        )
        share = max(1, self.n_features // 16)
        self._shares = row_blocks(self.n_features, share)

    @property
    def n_bytes(self) -> int:
        """What the codes take in memory."""
        return sum(
            column.codes.nbytes + (0 if column.rows is None else column.rows.nbytes)
            for column in self._columns
        )

    def best(self, direction: FloatArray) -> Cut | None:
        """Find the cut whose documents have the sum of ``direction`` of the largest magnitude.

        Of equal ones the first feature is taken, then the highest threshold. None if no feature
        has a threshold.
        """
        total = float(direction.sum())

        def search(share: tuple[int, int]) -> list[Cut]:
            found = []
            for j in range(*share):
                column = self._columns[j]
                if len(column.thresholds):
                    found.append(_best_of(column, j, direction, total))
            return found

        best = None
        for cuts in self.executor.map(search, self._shares):
            for cut in cuts:
                if best is None or abs(cut.agreement) > abs(best.agreement) + TIED:
                    best = cut
        return best

    def add(self, cut: Cut, value: float, scores: FloatArray) -> None:
        """Add ``value`` to the scores of the documents that a cut is true of."""
        scores[cut_values(cut, column_values(self._X, cut.feature))] += value


def column_values(X: Matrix, feature: int) -> AnyArray:
    """Give a column of a dense matrix or, made dense, of a CSC matrix.

    >>> column_values(np.array([[1.0, 2.0], [3.0, 4.0]]), 1).tolist()
    [2.0, 4.0]
    """
    if isinstance(X, np.ndarray):
        return X[:, feature]
    begin, end = int(X.indptr[feature]), int(X.indptr[feature + 1])
    column = np.zeros(X.shape[0], dtype=X.dtype)
    column[kernel_view(X.indices)[begin:end]] = X.data[begin:end]
    return column


def cut_values(cut: Cut, column: AnyArray) -> AnyArray:
    """Tell of which values a cut is true.

    >>> cut_values(Cut(0.5, 0, 3.0, 1), np.array([1.0, 4.0, np.nan])).tolist()
    [False, True, True]
    """
    with np.errstate(invalid="ignore"):
        true = np.asarray(column.astype(np.float64) > cut.threshold)
    return true | np.isnan(column) if cut.missing else true


def choose_thresholds(
    values: AnyArray,
    weight: FloatArray | None = None,
    *,
    zeros: float = 0.0,
    n_thresholds: int | None = None,
) -> FloatArray:
    """Give a threshold between any two neighbouring values, or the few nearest to quantiles.

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
    middle = 0.5 * low + 0.5 * high  # halves first: the sum may be too large for a number
    return np.where((middle >= low) & (middle < high), middle, low)


def _nearest(places: IntArray, targets: FloatArray) -> IntArray:
    after = np.minimum(np.searchsorted(places, targets), len(places) - 1)
    before = np.maximum(after - 1, 0)
    closer = np.abs(places[before] - targets) <= np.abs(places[after] - targets)
    return np.unique(np.where(closer, before, after))


def _cut_column(X: Matrix, j: int, n_thresholds: int | None, weight: FloatArray | None) -> _Column:
    rows: AnyArray | None = None
    zeros = 0.0
    if isinstance(X, np.ndarray):
        values = np.ascontiguousarray(X[:, j])
    else:
        begin, end = int(X.indptr[j]), int(X.indptr[j + 1])
        values, rows = X.data[begin:end], kernel_view(X.indices[begin:end])
        zeros = float(X.shape[0] - (end - begin))
    mine = weight if weight is None or rows is None else weight[rows]
    if weight is not None and mine is not None and rows is not None:
        rest = np.count_nonzero(weight) - np.count_nonzero(mine)
        zeros = max(float(weight.sum() - mine.sum()), 1e-300) if rest else 0.0
    absent = np.isnan(values)
    counted = ~absent if mine is None else ~absent & (mine > 0)
    whole = bool(counted.all())
    thresholds = choose_thresholds(
        values if whole else values[counted],
        mine if mine is None or whole else mine[counted],
        zeros=zeros,
        n_thresholds=n_thresholds,
    )
    some_absent = bool((absent if mine is None else absent & (mine > 0)).any())
    if some_absent and (zeros > 0.0 or counted.any()):
        thresholds = np.concatenate(([-np.inf], thresholds))
    codes = np.searchsorted(thresholds, values.astype(np.float64), side="left")
    codes[absent] = len(thresholds) + 1
    return _Column(
        thresholds,
        codes.astype(np.min_scalar_type(len(thresholds) + 1)),
        rows,
        int(np.searchsorted(thresholds, 0.0, side="left")),
    )


def _best_of(column: _Column, feature: int, direction: FloatArray, total: float) -> Cut:
    n_codes = len(column.thresholds) + 2
    if column.rows is None:
        sums = _add_up(column.codes, direction, n_codes, LANES if n_codes <= FEW_CODES else 1)
    else:
        sums = np.zeros(n_codes)
        stored = _add_up_rows(column.codes, column.rows, direction, sums)
        sums[column.zero_code] += total - stored
    agreement, at, missing = _best_threshold(sums, TIED)
    return Cut(agreement, feature, float(column.thresholds[at]), missing)


@kernel
def _add_up(codes, direction, n_codes, lanes):  # type: ignore[no-untyped-def]
    """Sum by code; with lanes, neighbours of the same code need not wait for each other."""
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
    """Run through the thresholds from the highest down; the last sum is that of missing values."""
    n = len(sums) - 2
    absent = sums[n + 1]
    above = 0.0
    best, at, missing = 0.0, n - 1, 0
    for k in range(n - 1, -1, -1):
        above += sums[k + 1]
        if abs(above) > abs(best) + tied:
            best, at, missing = above, k, 0
        if abs(above + absent) > abs(best) + tied:
            best, at, missing = above + absent, k, 1
    return best, at, missing
