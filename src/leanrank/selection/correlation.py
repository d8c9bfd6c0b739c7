"""Correlation of features within queries, and groups of correlated features."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.execution import (
    ROWS_PER_RANGE,
    add_up,
    make_executor,
    query_ranges,
    single_threaded_blas,
)


def within_query_correlation(
    data: RankingData,
    features: IntArray | None = None,
    *,
    n_jobs: int | None = None,
    rows_per_range: int = ROWS_PER_RANGE,
) -> FloatArray:
    """Correlate features over documents, each less its mean over the query.

    Differences between queries, such as the length of the query, do not count. The data are read
    once.

    Parameters
    ----------
    data : RankingData
    features : array of int, optional
        The columns to use; all by default.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    rows_per_range : int
        Documents per unit of work; the last bits depend on it.

    Returns
    -------
    array of shape (features, features)
        1 on the diagonal; 0 beside it for a feature that is constant within every query.

    Examples
    --------
    >>> data = RankingData([[1.0, 2], [2, 1], [11, 32], [12, 31]], qid=[1, 1, 2, 2])
    >>> within_query_correlation(data).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    columns = np.arange(data.n_features) if features is None else np.asarray(features)
    ptr, n_columns = data.query_ptr, len(columns)
    products = _sparse_products if data.is_sparse else _dense_products
    shift = np.zeros(n_columns)
    if not data.is_sparse and len(data):  # against cancellation between large, close values
        shift = np.nan_to_num(np.asarray(data.X[0, columns], dtype=np.float64))

    def sums(part: tuple[int, int]) -> FloatArray:
        first, last = part
        block: Any = data.X[int(ptr[first]) : int(ptr[last])][:, columns]
        return products(block.astype(np.float64), np.diff(ptr[first : last + 1]), shift)

    with single_threaded_blas():
        parts = make_executor(n_jobs).map(sums, query_ranges(ptr, rows_per_range))
    total = add_up(parts) if parts else np.zeros((n_columns + 1, n_columns))
    return _scaled(total[:-1], total[-1] * (_LOST_SPARSE if data.is_sparse else _LOST_DENSE))


def correlated_groups(correlation: FloatArray, threshold: float = 0.9) -> list[IntArray]:
    """Group features so that any two of a group reach the threshold.

    Parameters
    ----------
    correlation : array of shape (features, features)
        The sign does not matter.
    threshold : float, default=0.9

    Returns
    -------
    list of array of int
        Each ascending, in order of their first feature; a feature alone is a group.

    Examples
    --------
    >>> table = np.array([[1.0, 0.2, -0.95], [0.2, 1.0, 0.1], [-0.95, 0.1, 1.0]])
    >>> [group.tolist() for group in correlated_groups(table)]
    [[0, 2], [1]]
    """
    n_features = len(correlation)
    if n_features < 2:
        return [np.arange(n_features)] if n_features else []
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distance = np.clip(1.0 - np.abs(correlation), 0.0, 1.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), method="complete")
    label = fcluster(tree, 1.0 - threshold + 1e-12, criterion="distance")
    groups = [np.flatnonzero(label == one) for one in np.unique(label)]
    return sorted(groups, key=lambda group: int(group[0]))


# Below this share of a feature's sum of squares, what is left within queries is rounding.
_LOST_DENSE, _LOST_SPARSE = 1e-24, 1e-13


def _dense_products(block: FloatArray, sizes: IntArray, shift: FloatArray) -> FloatArray:
    """Return Σ (x − mean)(x − mean)ᵀ over queries, and below it Σ x²; NaN does not count."""
    block -= shift
    missing = np.isnan(block)
    block[missing] = 0.0
    squares = np.einsum("ij,ij->j", block, block)
    filled = sizes[sizes > 0]
    if len(filled):
        starts = np.concatenate(([0], np.cumsum(filled)[:-1]))
        known = np.add.reduceat(~missing, starts, axis=0, dtype=np.int64)
        means = np.add.reduceat(block, starts, axis=0) / np.maximum(known, 1)
        block -= np.repeat(means, filled, axis=0)
        block[missing] = 0.0
    return np.vstack([block.T @ block, squares])


def _sparse_products(block: Any, sizes: IntArray, shift: FloatArray) -> FloatArray:
    """Return the same without making the block dense; missing values count as zeros."""
    from scipy.sparse import csr_array

    del shift  # zeros must stay zeros
    np.nan_to_num(block.data, copy=False)
    n_rows = int(sizes.sum())
    root = np.repeat(1.0 / np.sqrt(np.maximum(sizes, 1)), sizes)  # size · mean² = (sum / √size)²
    query_ptr = np.concatenate(([0], np.cumsum(sizes)))
    members = csr_array((root, np.arange(n_rows), query_ptr), shape=(len(sizes), n_rows))
    sums = members @ block
    gram = (block.T @ block).toarray()
    return np.vstack([gram - (sums.T @ sums).toarray(), np.diag(gram)])


def _scaled(gram: FloatArray, lost: FloatArray) -> FloatArray:
    """Turn sums of products into correlations."""
    squares = np.diag(gram)
    varying = squares > lost
    inverse = np.where(varying, 1.0 / np.sqrt(np.where(varying, squares, 1.0)), 0.0)
    table: FloatArray = np.clip(gram * inverse[:, None] * inverse[None, :], -1.0, 1.0)
    np.fill_diagonal(table, 1.0)
    return table
