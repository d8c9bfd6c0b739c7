"""Passive-aggressive steps on triplets (text query, relevant picture, other picture).

The score of a picture p for a query q is F(q, p) = q·(W p), W of terms × picture features. A step
moves W to the minimiser of

    ½‖W − W₀‖² + C·max(0, 1 − F(q, p⁺) + F(q, p⁻)),

which is W₀ + τ q (p⁺ − p⁻)ᵀ with τ = min(C, loss/(‖q‖²‖p⁺ − p⁻‖²)): only the rows of q's terms and
the columns in which the pictures differ are touched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leanrank._jit import kernel, kernel_view
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.errors import InputError
from leanrank.solvers.sampling._pair_rows import (
    PairRows,
    add,
    as_rows,
    dot,
    fill_differences,
    make_buffers,
    pair_width,
    squared_norm,
)
from leanrank.solvers.sampling.pair_descent import step_counts
from leanrank.solvers.sampling.pair_sampling import next_uniform


class Triplets(NamedTuple):
    """The index that triplets are drawn from, as kernels take it.

    Attributes
    ----------
    query_ptr, terms, values : array
        The text queries in CSR form.
    squared : array
        The squared norm of each.
    usable : array of int64
        The queries with terms, a relevant picture and another one.
    relevant_ptr, relevant : array
        The relevant pictures of each query, ascending, in CSR form.
    """

    query_ptr: AnyArray
    terms: AnyArray
    values: FloatArray
    squared: FloatArray
    usable: IntArray
    relevant_ptr: AnyArray
    relevant: AnyArray


class RetrievalBlock(NamedTuple):
    """Queries, pictures and relevance, prepared for steps."""

    triplets: Triplets
    pictures: PairRows
    n_pictures: int
    width: int


def make_retrieval_block(Q: Matrix, P: Matrix, relevance: Matrix) -> RetrievalBlock:
    """Prepare CSR queries, dense or CSR pictures, and CSR relevance without stored zeros."""
    values = Q.data.astype(np.float64)
    of_query = np.repeat(np.arange(Q.shape[0]), np.diff(Q.indptr))
    squared = np.bincount(of_query, values**2, minlength=Q.shape[0]).astype(np.float64)
    n_relevant = np.diff(relevance.indptr)
    usable = np.flatnonzero((squared > 0) & (n_relevant > 0) & (n_relevant < P.shape[0]))
    if len(usable) == 0:
        raise InputError(
            "no query has terms, a relevant picture and one that is not, so there is nothing to "
            "learn from"
        )
    triplets = Triplets(
        kernel_view(Q.indptr),
        kernel_view(Q.indices),
        values,
        squared,
        usable,
        kernel_view(relevance.indptr),
        kernel_view(relevance.indices),
    )
    return RetrievalBlock(triplets, as_rows(P), P.shape[0], pair_width(P))


def take_steps(
    W: FloatArray,
    block: RetrievalBlock,
    C: float,
    n_steps: int,
    generator: npt.NDArray[np.uint64],
) -> tuple[float, int]:
    """Take steps on W; return the mean loss before each step, and how many steps changed W."""
    buffers = make_buffers(block.width)
    queries = np.zeros(len(buffers.pairs), dtype=np.int64)
    total, moved = 0.0, 0
    terms = int(np.diff(block.triplets.query_ptr).max(initial=1))
    for some in step_counts(n_steps, len(queries), block.width * terms):
        lost, steps = _take_steps(
            *(W, block.triplets, block.pictures, block.n_pictures, C),
            *(some, generator, queries, buffers),
        )
        total, moved = total + float(lost), moved + int(steps)
    return total / n_steps, moved


@kernel
def _take_steps(W, triplets, pictures, n_pictures, C, n_steps, generator, queries, buffers):  # type: ignore[no-untyped-def]
    is_dense = pictures.dense.shape[0] > 0
    total, moved, done = 0.0, 0, 0
    while done < n_steps:
        n = min(len(queries), n_steps - done)
        fill_triplets(triplets, n_pictures, generator, queries, buffers.pairs, n)
        fill_differences(
            pictures, buffers.pairs, n, buffers.features, buffers.values, buffers.counts
        )
        for at in range(n):
            features, values, count = buffers.features, buffers.values, buffers.counts[at]
            begin, end = triplets.query_ptr[queries[at]], triplets.query_ptr[queries[at] + 1]
            lead = 0.0
            for k in range(begin, end):
                row = W[triplets.terms[k]]
                lead += triplets.values[k] * dot(is_dense, row, features, values, at, count)
            loss = max(0.0, 1.0 - lead)
            total += loss
            size = triplets.squared[queries[at]] * squared_norm(values, at, count)
            if loss > 0.0 and size > 0.0:
                step = min(C, loss / size)
                moved += 1
                for k in range(begin, end):
                    row = W[triplets.terms[k]]
                    factor = step * triplets.values[k]
                    add(is_dense, row, features, values, at, count, factor)
        done += n
    return total, moved


@kernel
def fill_triplets(triplets, n_pictures, generator, queries, pairs, n):  # type: ignore[no-untyped-def]
    """Draw a query, one of its relevant pictures and one of the others, all equally likely."""
    for at in range(n):
        q = triplets.usable[int(next_uniform(generator) * len(triplets.usable))]
        begin, end = triplets.relevant_ptr[q], triplets.relevant_ptr[q + 1]
        relevant = triplets.relevant[begin:end]
        queries[at] = q
        pairs[at, 0] = relevant[int(next_uniform(generator) * len(relevant))]
        place = int(next_uniform(generator) * (n_pictures - len(relevant)))
        # shift the place among the others by the relevant pictures before it
        low, high = 0, len(relevant)
        while low < high:
            middle = (low + high) // 2
            if relevant[middle] - middle <= place:
                low = middle + 1
            else:
                high = middle
        pairs[at, 1] = place + low
