"""Features cut at thresholds, and the search for the cut that agrees best with a direction.

Every feature is prepared once, as codes or, if it has very many values, sorted; a search then costs
one sequential read of one or two bytes per value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import AnyArray, FloatArray, Matrix
from leanrank.data.ranking_data import column_values
from leanrank.execution import Executor, row_blocks
from leanrank.solvers.boosting._columns import (
    TIED,
    CodedColumn,
    Found,
    SortedColumn,
    choose_thresholds,
)


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
        values.
    executor : Executor
    weight : array, optional
        One weight per document, for the quantiles; values of documents of weight 0 do not count.
    most_codes : int
        Thresholds up to which a dense feature is coded; their histogram still fits a cache.
    n_bins : int
        Bins of a feature that is sorted instead.

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
        *,
        most_codes: int = 1 << 16,
        n_bins: int = 2_048,
    ) -> None:
        self.n_rows, self.n_features = map(int, X.shape)
        self.executor = executor
        if not isinstance(X, np.ndarray):
            X = X.tocsc()
        self._X = X
        self._columns = executor.map(
            lambda j: _cut_column(X, j, n_thresholds, weight, most_codes, n_bins),
            range(self.n_features),
        )
        self._shares = row_blocks(self.n_features, max(1, self.n_features // 16))

    def best(self, direction: FloatArray) -> Cut | None:
        """Return the cut with the largest absolute sum of ``direction`` over its documents.

        Among equals the first feature is taken. None if no feature has a threshold.
        """
        total = float(direction.sum())

        def search(share: tuple[int, int]) -> list[Found | None]:
            return [self._columns[j].search(direction, total) for j in range(*share)]

        found = [one for share in self.executor.map(search, self._shares) for one in share]
        floor = max((abs(one.agreement) for one in found if one is not None), default=0.0)

        def refine(j: int) -> Found | None:
            one = found[j]
            if one is None or one.bound <= floor + TIED:
                return one
            return self._columns[j].refine(direction, one, floor)

        best, feature = None, -1
        for j, one in enumerate(self.executor.map(refine, range(self.n_features))):
            if one is None or (best and abs(one.agreement) <= abs(best.agreement) + TIED):
                continue
            best, feature = one, j
        if best is None:
            return None
        threshold = self._columns[feature].threshold(best.place)
        return Cut(best.agreement, feature, threshold, best.missing)

    def add(self, cut: Cut, value: float, scores: FloatArray) -> None:
        """Add ``value`` to the scores of the documents of which a cut is true."""
        scores[cut_values(cut, column_values(self._X, cut.feature))] += value


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
    most_codes: int,
    n_bins: int,
) -> CodedColumn | SortedColumn:
    rows: AnyArray | None = None
    zeros = 0.0
    if isinstance(X, np.ndarray):
        values, mine = np.ascontiguousarray(X[:, j]), weight
    else:
        begin, end = int(X.indptr[j]), int(X.indptr[j + 1])
        values, rows = X.data[begin:end], kernel_view(X.indices[begin:end])
        zeros = float(X.shape[0] - (end - begin))
        mine = None if weight is None else weight[rows]
        if weight is not None and mine is not None:
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
    some_missing = bool((absent if mine is None else absent & (mine > 0)).any())
    some_missing = some_missing and (zeros > 0.0 or bool(counted.any()))
    if rows is None and n_thresholds is None and len(thresholds) > most_codes - 3:
        return SortedColumn.of(values, counted, some_missing, n_bins, kept=X[:, j])
    if some_missing:
        thresholds = np.concatenate(([-np.inf], thresholds))
    return CodedColumn.of(values, thresholds, rows)
