"""Loops over click logs: finding documents, writing preference edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._jit import kernel


@kernel
def find_rows(query: Any, document: Any, query_ptr: Any, sorted_documents: Any, rows: Any) -> int:
    """Look documents up among those of their query; returns the first that is not there, or −1.

    ``sorted_documents`` holds the document numbers of each query, ascending; ``rows`` receives the
    position found.
    """
    for at in range(len(query)):
        low = query_ptr[query[at]]
        end = query_ptr[query[at] + 1]
        high = end
        wanted = document[at]
        while low < high:
            middle = (low + high) // 2
            if sorted_documents[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        if low == end or sorted_documents[low] != wanted:
            return at
        rows[at] = low
    return -1


@kernel
def find_repeated(list_ptr: Any, row: Any, n_rows: int) -> int:
    """Find the first document that a list shows twice, or −1."""
    seen_in = np.full(n_rows, -1, dtype=np.int64)
    for q in range(len(list_ptr) - 1):
        for at in range(list_ptr[q], list_ptr[q + 1]):
            if seen_in[row[at]] == q:
                return at
            seen_in[row[at]] = q
    return -1


@kernel
def count_edges(list_ptr: Any, clicked: Any, skip_above: bool, skip_next: bool) -> int:
    """Count the preferences that all lists express."""
    total = 0
    for q in range(len(list_ptr) - 1):
        skipped = 0
        for at in range(list_ptr[q], list_ptr[q + 1]):
            if clicked[at]:
                if skip_above:
                    total += skipped
                if skip_next and at + 1 < list_ptr[q + 1] and not clicked[at + 1]:
                    total += 1
            else:
                skipped += 1
    return total


@kernel
def write_edges(
    list_ptr: Any, row: Any, clicked: Any, skip_above: bool, skip_next: bool, n_rows: int, keys: Any
) -> None:
    """Write every preference as winner × n_rows + loser."""
    edge = 0
    for q in range(len(list_ptr) - 1):
        for at in range(list_ptr[q], list_ptr[q + 1]):
            if not clicked[at]:
                continue
            first = row[at] * n_rows
            if skip_above:
                for above in range(list_ptr[q], at):
                    if not clicked[above]:
                        keys[edge] = first + row[above]
                        edge += 1
            if skip_next and at + 1 < list_ptr[q + 1] and not clicked[at + 1]:
                keys[edge] = first + row[at + 1]
                edge += 1
