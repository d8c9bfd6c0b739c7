"""Drawing pairs of documents of one query and different levels, without listing them.

The documents are sorted by query and level, so that the documents *below* one are a range of
positions. A *cell* is the documents of one level of one query that have others below. A pair is
drawn by three uniform numbers: for a cell, by its number of pairs through a guide table, for a
document of the cell, and for a document below. That takes constant expected time, whatever the
number of documents.

Numbers come from SplitMix64, so that the same seed gives the same pairs on any machine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from leanrank._jit import kernel, kernel_view
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import informative_queries
from leanrank.errors import NoLevelsError


class PairIndex(NamedTuple):
    """An index for drawing pairs, for kernels.

    Attributes
    ----------
    rows : array of int64
        The documents by query, in ascending level within a query.
    first, last : array of int64
        The positions in ``rows`` of each cell.
    bottom : array of int64
        The position of the first document of each cell's query: the documents below a cell are at
        ``bottom:first``.
    cumulative : array
        Running sum of the cells' probabilities.
    guide : array of int64
        The cells in which equal parts of the unit interval begin.
    mass : array
        Running sum of the documents' weights by position, starting at 0; empty if all weigh 1.
    """

    rows: IntArray
    first: IntArray
    last: IntArray
    bottom: IntArray
    cumulative: FloatArray
    guide: IntArray
    mass: FloatArray


def index_pairs(
    y: FloatArray,
    query_ptr: IntArray,
    *,
    over: str = "pairs",
    sample_weight: FloatArray | None = None,
    query_weight: FloatArray | None = None,
    keys: FloatArray | None = None,
) -> PairIndex:
    """Return an index of the pairs of documents of one query with different labels.

    Parameters
    ----------
    y : array
        Labels; documents labelled NaN are left out.
    query_ptr : array of int64
        Query q owns the rows ``query_ptr[q]:query_ptr[q + 1]``.
    over : {"pairs", "queries"}
        "pairs": every pair is equally likely. "queries": every query is, then each of its pairs.
    sample_weight : array, optional
        A document of weight 2 counts twice; the weight of a pair is the product of both.
    query_weight : array, optional
        Multiplies the probability of a query's pairs.
    keys : array, optional
        One number per document, from ``document_keys``, with which the draws do not depend on the
        order of the rows.

    Examples
    --------
    >>> index = index_pairs(np.array([2.0, 0, 1, 1, 0]), np.array([0, 3, 5]))
    >>> higher, lower = draw_pairs(index, 1000, seed=0)
    >>> sorted(set(zip(higher.tolist(), lower.tolist())))
    [(0, 1), (0, 2), (2, 1), (3, 4)]
    """
    kept = ~np.isnan(y)
    if sample_weight is not None:
        kept &= sample_weight > 0
    query_of = np.repeat(np.arange(len(query_ptr) - 1), np.diff(query_ptr))
    if query_weight is not None:
        kept &= np.asarray(query_weight)[query_of] > 0
    able_query = informative_queries(np.where(kept, y, np.nan), query_ptr)
    rows = np.flatnonzero(kept & able_query[query_of])
    weight = np.ones(len(rows)) if sample_weight is None else sample_weight[rows]
    order = _order_of(y[rows], query_of[rows], weight, None if keys is None else keys[rows])
    rows, weight = rows[order], weight[order]
    labels, queries = y[rows], query_of[rows]

    starts = _starts(queries, labels)
    first, last = starts, np.append(starts[1:], len(rows))
    query_starts = np.flatnonzero(np.diff(queries, prepend=-1))
    bottom = query_starts[np.searchsorted(query_starts, first, side="right") - 1]
    mass = np.concatenate(([0.0], np.cumsum(weight)))
    chance = (mass[last] - mass[first]) * (mass[first] - mass[bottom])
    cell_query = queries[first]
    if over == "queries":
        total = np.bincount(cell_query, chance, len(query_ptr) - 1)[cell_query]
        chance = np.divide(chance, total, out=np.zeros_like(chance), where=total > 0)
    if query_weight is not None:
        chance = chance * query_weight[cell_query]
    able = np.flatnonzero(chance > 0)
    if len(able) == 0:
        raise NoLevelsError
    cumulative, guide = _guide(chance[able])
    return PairIndex(
        rows=rows,
        first=first[able],
        last=last[able],
        bottom=bottom[able],
        cumulative=cumulative,
        guide=guide,
        mass=mass if sample_weight is not None else np.empty(0),
    )


def index_all_pairs(
    query_ptr: IntArray, *, among: AnyArray | None = None, keys: FloatArray | None = None
) -> PairIndex | None:
    """Return an index of all pairs of documents of one query, whatever their labels.

    ``among`` selects documents. None if no query has two of them.

    >>> higher, lower = draw_pairs(index_all_pairs(np.array([0, 3, 4])), 100, seed=0)
    >>> sorted(set(zip(higher.tolist(), lower.tolist())))
    [(1, 0), (2, 0), (2, 1)]
    """
    n_rows = int(query_ptr[-1])
    position = np.arange(n_rows, dtype=np.float64)
    if keys is not None:  # then the draws do not depend on the order of the rows
        position[np.argsort(keys, kind="stable")] = np.arange(n_rows)
    if among is not None:
        position[~np.asarray(among, dtype=bool)] = np.nan
    query_of = np.repeat(np.arange(len(query_ptr) - 1), np.diff(query_ptr))
    if np.all(np.bincount(query_of[~np.isnan(position)], minlength=1) < 2):
        return None
    return index_pairs(position, query_ptr, keys=keys)


def document_keys(X: Matrix) -> FloatArray:
    """Return one number per document, a fixed projection of its features.

    A dense and a sparse X of the same values have the same keys. A feature that is constant within
    a query adds a constant to the keys of that query.

    >>> document_keys(np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]])).round(3).tolist()
    [-0.518, 0.17, -0.518]
    """
    direction = np.empty(X.shape[1])
    fill_uniform(new_state(0x6C65616E), direction)
    direction = 2.0 * direction - 1.0
    out = np.zeros(X.shape[0])
    if isinstance(X, np.ndarray):
        _dense_keys(kernel_view(X), direction, out)
    else:
        indptr, indices = kernel_view(X.indptr), kernel_view(X.indices)
        _sparse_keys(indptr, indices, kernel_view(X.data), direction, out)
    return out


def new_state(seed: int, stream: int = 0) -> npt.NDArray[np.uint64]:
    """Return the state of a generator; the streams of a seed are independent of each other."""
    mixed = np.random.SeedSequence([int(seed), int(stream)]).generate_state(1, np.uint64)
    return np.array(mixed, dtype=np.uint64)


def draw_pairs(index: PairIndex, n_pairs: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return drawn pairs: the rows of the higher and of the lower documents."""
    out = np.empty((n_pairs, 2), dtype=np.int64)
    fill_pairs(index, new_state(seed), out, n_pairs)
    return out[:, 0], out[:, 1]


def _order_of(
    labels: FloatArray, queries: IntArray, weight: FloatArray, keys: FloatArray | None
) -> IntArray:
    """Return the order by query and level; with keys, it does not depend on the row order."""
    ends = np.cumsum(np.bincount(queries))
    order = sort_within_queries(np.append(0, ends), labels, keys)
    if keys is None:
        return order
    # Queries are sorted by the variance of their keys, which a constant does not change.
    w, k = weight[order], keys[order]
    total = np.bincount(queries, w)
    mean = np.bincount(queries, w * k) / np.where(total > 0, total, 1.0)
    spread = np.bincount(queries, w * (k - mean[queries]) ** 2)
    by_spread = np.argsort(spread, kind="stable")
    sizes = np.diff(ends, prepend=0)[by_spread]
    shift = (ends[by_spread] - sizes) - (np.cumsum(sizes) - sizes)
    return order[np.arange(len(order)) + np.repeat(shift, sizes)]


def sort_within_queries(
    query_ptr: IntArray, labels: FloatArray, keys: FloatArray | None
) -> IntArray:
    """Return the order of documents within each query by level, then by key, then as given.

    >>> sort_within_queries(np.array([0, 3, 5]), np.array([1.0, 0, 1, 2, 1]), None).tolist()
    [1, 0, 2, 4, 3]
    """
    order = np.empty(len(labels), dtype=np.int64)
    keys = np.zeros(len(labels)) if keys is None else kernel_view(keys)
    _sort_within_queries(kernel_view(query_ptr), kernel_view(labels), keys, order)
    return order


def _starts(queries: IntArray, labels: FloatArray) -> IntArray:
    """Return the positions where the query or the label changes."""
    if len(queries) == 0:
        return np.empty(0, dtype=np.int64)
    changes = (np.diff(queries) != 0) | (np.diff(labels) != 0)
    return np.concatenate(([0], np.flatnonzero(changes) + 1)).astype(np.int64)


def _guide(chance: FloatArray) -> tuple[FloatArray, IntArray]:
    cumulative = np.cumsum(chance)
    cumulative /= cumulative[-1]
    parts = np.arange(len(chance)) / len(chance)
    guide = np.searchsorted(cumulative, parts, side="right").astype(np.int64)
    return cumulative, np.minimum(guide, len(chance) - 1)


GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MIX = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 2.0**-53


@kernel
def next_uniform(state: Any) -> float:
    """Advance the generator and return a number in [0, 1)."""
    state[0] += GOLDEN
    return to_unit(mix_bits(state[0]))


@kernel
def mix_bits(z: Any) -> Any:
    """Return the output of SplitMix64 for a state."""
    z = (z ^ (z >> _S30)) * _FIRST_MIX
    z = (z ^ (z >> _S27)) * _SECOND_MIX
    return z ^ (z >> _S31)


@kernel
def to_unit(z: Any) -> float:
    """Return a number in [0, 1) from 64 random bits."""
    return np.float64(z >> _S11) * _UNIT


@kernel
def fill_uniform(state, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        out[i] = next_uniform(state)


@kernel
def fill_pairs(index, state, out, n_pairs):  # type: ignore[no-untyped-def]
    """Draw pairs into the first rows of ``out``: the higher row, then the lower.

    This is faster than one at a time: the arrays are read from the index once, and memory reads
    overlap, those of ``rows`` in a loop of their own.
    """
    rows, mass = index.rows, index.mass
    first, last, bottom = index.first, index.last, index.bottom
    cumulative, guide = index.cumulative, index.guide
    n_cells = len(cumulative)
    for t in range(n_pairs):
        u = next_uniform(state)
        cell = guide[int(u * n_cells)]
        while cell < n_cells - 1 and cumulative[cell] <= u:
            cell += 1
        begin = first[cell]
        out[t, 0] = draw_position(mass, begin, last[cell], next_uniform(state))
        out[t, 1] = draw_position(mass, bottom[cell], begin, next_uniform(state))
    for t in range(n_pairs):
        out[t, 0], out[t, 1] = rows[out[t, 0]], rows[out[t, 1]]


@kernel
def draw_position(mass, begin, end, u):  # type: ignore[no-untyped-def]
    """Return a position in begin:end for a uniform number u, by weight if there are weights."""
    if len(mass) == 0:
        return begin + int(u * (end - begin))
    target = mass[begin] + u * (mass[end] - mass[begin])
    low, high = begin, end - 1
    while low < high:
        middle = (low + high) // 2
        if mass[middle + 1] <= target:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _sort_within_queries(query_ptr, labels, keys, order):  # type: ignore[no-untyped-def]
    for q in range(len(query_ptr) - 1):
        begin, end = query_ptr[q], query_ptr[q + 1]
        by_key = np.argsort(keys[begin:end], kind="mergesort")
        by_level = np.argsort(labels[begin:end][by_key], kind="mergesort")
        for at in range(end - begin):
            order[begin + at] = begin + by_key[by_level[at]]


@kernel
def _dense_keys(X, direction, out):  # type: ignore[no-untyped-def]
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[i, j] * direction[j]
        out[i] = total


@kernel
def _sparse_keys(indptr, indices, values, direction, out):  # type: ignore[no-untyped-def]
    for i in range(len(indptr) - 1):
        total = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            total += values[at] * direction[indices[at]]
        out[i] = total
