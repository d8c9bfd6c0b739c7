"""Rows by query and level, against NumPy's sort."""

import numpy as np
import pytest

from leanrank.losses.base import sort_into_cells


@pytest.mark.parametrize("n_levels", [1, 2, 5, 30, 500, 2_000])  # counted, and merged
def test_rows_are_sorted_by_query_and_level_and_stay_in_order_within(n_levels):
    rng = np.random.default_rng(n_levels)
    for _ in range(40):
        sizes = rng.integers(0, 40, rng.integers(1, 8))
        ptr = np.concatenate(([0], np.cumsum(sizes)))
        level_of = rng.integers(0, n_levels, ptr[-1])
        query_of = np.repeat(np.arange(len(sizes)), sizes)
        cells = sort_into_cells(level_of, n_levels, ptr)
        np.testing.assert_array_equal(cells.rows, np.lexsort((level_of, query_of)))
        pairs = np.column_stack([query_of, level_of])
        np.testing.assert_array_equal(
            np.column_stack([cells.query, cells.level]), np.unique(pairs, axis=0)
        )
