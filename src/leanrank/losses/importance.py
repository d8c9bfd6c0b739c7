"""Weights of pairs by level: a given table, or the change of NDCG by a swap of the documents."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.errors import InputError
from leanrank.losses.base import Cells

MOST_LEVELS_WITH_TABLE = 64


def importance_tables(
    importance: Any, levels: FloatArray, cells: Cells, mass: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Return the weight of each pair of levels, query by query.

    Parameters
    ----------
    importance : None, "ndcg" or array of shape (levels, levels)
        None: equal weights. "ndcg": the change of NDCG when two documents of these levels are
        swapped in the ideal ranking, with the mean discount over the ranks of each level. An array:
        one row per level of the winner, lowest level first.
    levels : array
        The distinct labels of the data, ascending.
    cells : Cells
    mass : array
        The weight of each document.

    Returns
    -------
    table, table_ptr : array
        Query q has ``table[table_ptr[q]:table_ptr[q + 1]]``, row after row; empty for None.
    """
    n_queries = len(cells.cell_ptr) - 1
    if importance is None:
        return np.zeros(0), np.zeros(n_queries + 1, np.int64)
    per_query = np.diff(cells.cell_ptr)
    if per_query.max(initial=0) > MOST_LEVELS_WITH_TABLE:
        raise InputError(
            f"importance takes at most {MOST_LEVELS_WITH_TABLE} levels per query but a query has "
            f"{per_query.max()}: round the labels, or leave importance out"
        )
    table_ptr = np.concatenate(([0], np.cumsum(per_query**2))).astype(np.int64)
    if isinstance(importance, str):
        if importance != "ndcg":
            raise InputError(
                f"importance={importance!r} is not known: use None, 'ndcg' or a table by levels"
            )
        tables = _swap_costs(levels, cells, mass)
    else:
        whole = _checked(importance, len(levels))
        tables = [whole[np.ix_(k, k)] for k in np.split(cells.level, cells.cell_ptr[1:-1])]
    return np.concatenate([t.ravel() for t in tables]).astype(np.float64, copy=False), table_ptr


def summed_importance(
    table: FloatArray, table_ptr: IntArray, cells: Cells, sizes: FloatArray
) -> FloatArray:
    """Return the total weight of the pairs of each query; ``sizes`` are the masses of the cells."""
    cuts = cells.cell_ptr[1:-1]
    return np.array(
        [
            size @ np.tril(weight.reshape(len(size), len(size)), -1) @ size
            for size, weight in zip(
                np.split(sizes, cuts), np.split(table, table_ptr[1:-1]), strict=True
            )
        ]
    )


def _checked(importance: Any, n_levels: int) -> FloatArray:
    try:
        table = np.asarray(importance, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"importance holds something that is not a number ({error})") from error
    if table.shape != (n_levels, n_levels):
        raise InputError(
            f"the importance table has shape {table.shape} but the labels have {n_levels} levels: "
            "give one row per level of the winner, lowest level first"
        )
    if not np.isfinite(table).all() or (table < 0).any():
        raise InputError("the importance table must hold finite numbers that are not negative")
    return table


def _swap_costs(levels: FloatArray, cells: Cells, mass: FloatArray) -> list[FloatArray]:
    """Return, for each query, (gain_k − gain_l)·(discount_k − discount_l) / the ideal DCG."""
    from leanrank.metrics.conventions import find_convention

    convention = find_convention("standard")
    gains = convention.gains(levels)[cells.level]
    sizes = np.bincount(cells.cell, mass, minlength=len(cells.level)).astype(np.float64)
    longest = int(np.ceil(np.bincount(cells.query, sizes).max(initial=0.0)))
    # a level of weight 2.5 takes two and a half ranks: weights repeat documents
    earned = np.concatenate(([0.0], np.cumsum(convention.discounts(longest))))
    tables = []
    for first, last in zip(cells.cell_ptr[:-1], cells.cell_ptr[1:], strict=True):
        size, gain = sizes[first:last], gains[first:last]
        end = np.cumsum(size[::-1])[::-1]
        taken = np.interp([end, end - size], np.arange(longest + 1), earned)
        discount = taken[0] - taken[1]
        ideal = float(gain @ discount)
        mean = np.divide(discount, size, out=np.zeros_like(size), where=size > 0)
        cost = np.abs(np.subtract.outer(gain, gain) * np.subtract.outer(mean, mean))
        tables.append(cost / ideal if ideal > 0 else np.zeros_like(cost))
    return tables
