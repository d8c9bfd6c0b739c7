"""Loops over click logs: numbering words, finding documents, writing preference edges."""

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


@kernel
def number_words(words: Any, codes: Any, first: Any) -> int:
    """Number distinct rows of a table of integers in order of first appearance.

    ``codes`` receives the number of each row, ``first`` the first row of each number; returns how
    many numbers there are. A hash table with open addressing, which grows as it fills.
    """
    n_rows, width = words.shape
    n_distinct = 0
    mask = np.int64(1023)
    table = np.full(mask + 1, -1, dtype=np.int64)
    hashes = np.empty(n_rows, dtype=np.uint64)  # of the distinct ones
    for row in range(n_rows):
        h = np.uint64(14695981039346656037)
        for k in range(width):
            h = (h ^ np.uint64(words[row, k])) * np.uint64(1099511628211)
        h ^= h >> np.uint64(29)
        slot = np.int64(h & np.uint64(mask))
        while True:
            number = table[slot]
            if number < 0:
                table[slot] = n_distinct
                hashes[n_distinct] = h
                first[n_distinct] = row
                codes[row] = n_distinct
                n_distinct += 1
                break
            if hashes[number] == h:
                same = True
                for k in range(width):
                    if words[row, k] != words[first[number], k]:
                        same = False
                        break
                if same:
                    codes[row] = number
                    break
            slot = (slot + 1) & mask
        if 2 * n_distinct > mask:
            mask = 4 * mask + 3
            table = np.full(mask + 1, -1, dtype=np.int64)
            for number in range(n_distinct):
                slot = np.int64(hashes[number] & np.uint64(mask))
                while table[slot] >= 0:
                    slot = (slot + 1) & mask
                table[slot] = number
    return n_distinct
