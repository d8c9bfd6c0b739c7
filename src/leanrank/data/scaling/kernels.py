"""Kernels that scale each query by itself, for more rows than NumPy does well."""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, IntArray


@kernel
def minmax_rows(X: AnyArray, ptr: IntArray, q0: int, q1: int, out: AnyArray) -> None:
    """Scale the rows of queries q0:q1 to [0, 1]."""
    n_features = X.shape[1]
    low = np.empty(n_features)
    high = np.empty(n_features)
    for q in range(q0, q1):
        low[:] = np.inf
        high[:] = -np.inf
        for i in range(ptr[q], ptr[q + 1]):
            for j in range(n_features):
                low[j] = min(low[j], X[i, j])
                high[j] = max(high[j], X[i, j])
        for i in range(ptr[q], ptr[q + 1]):
            for j in range(n_features):
                span = high[j] - low[j]
                if span == 0:
                    out[i, j] = 0
                elif span < np.inf:
                    out[i, j] = (X[i, j] - low[j]) / span
                else:  # the difference of the largest numbers is not a number: halve them first
                    out[i, j] = (X[i, j] / 2 - low[j] / 2) / (high[j] / 2 - low[j] / 2)


@kernel
def standard_rows(X: AnyArray, ptr: IntArray, q0: int, q1: int, out: AnyArray) -> None:
    """Scale the rows of queries q0:q1 mean 0 and deviation 1."""
    n_features = X.shape[1]
    low = np.empty(n_features)
    high = np.empty(n_features)
    mean = np.empty(n_features)
    squares = np.empty(n_features)
    for q in range(q0, q1):
        n_rows = ptr[q + 1] - ptr[q]
        low[:] = np.inf
        high[:] = -np.inf
        mean[:] = 0
        squares[:] = 0
        for i in range(ptr[q], ptr[q + 1]):
            for j in range(n_features):
                low[j] = min(low[j], X[i, j])
                high[j] = max(high[j], X[i, j])
                mean[j] += X[i, j] / n_rows
        for i in range(ptr[q], ptr[q + 1]):
            for j in range(n_features):
                squares[j] += (X[i, j] - mean[j]) ** 2
        for i in range(ptr[q], ptr[q + 1]):
            for j in range(n_features):
                if low[j] == high[j] or squares[j] == 0:
                    out[i, j] = 0
                else:
                    out[i, j] = (X[i, j] - mean[j]) / np.sqrt(squares[j] / n_rows)


@kernel
def rank_rows(X: AnyArray, ptr: IntArray, q0: int, q1: int, out: AnyArray) -> None:
    """Replace the rows of queries q0:q1 by scaled mean ranks."""
    for q in range(q0, q1):
        start = ptr[q]
        n_rows = ptr[q + 1] - start
        column = np.empty(n_rows, dtype=X.dtype)
        for j in range(X.shape[1]):
            for i in range(n_rows):
                column[i] = X[start + i, j]
            order = np.argsort(column)
            first = 0
            while first < n_rows:
                last = first
                while last + 1 < n_rows and column[order[last + 1]] == column[order[first]]:
                    last += 1
                rank = 0.5 if n_rows == 1 else (first + last) / 2 / (n_rows - 1)
                for at in range(first, last + 1):
                    out[start + order[at], j] = rank
                first = last + 1


KERNELS = {"minmax": minmax_rows, "standard": standard_rows, "rank": rank_rows}
