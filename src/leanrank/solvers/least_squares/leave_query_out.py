"""Exact leave-query-out scores of RankRLS for every alpha, without training again.

Let e be the residual b − Aw of the model trained on everything. The residual on query q of the
model trained without q is p_q = M_q⁻¹ e_q, where M_q is the block of I − A(AᵀA + alpha·I)⁻¹Aᵀ that
belongs to q (the paper's G scaled by alpha): Theorem 3.1 of Pahikkala et al. 2010.

Leaving a query out takes its loss out of the objective and changes nothing else: with
``normalize="none"`` that is training on the other queries; otherwise the normaliser of the
objective stays that of all queries.
"""

from __future__ import annotations

import numpy as np

from leanrank._typing import FloatArray
from leanrank.execution import Executor
from leanrank.solvers.least_squares.spectrum import Spectrum, row_ranges


def leave_query_out_scores(
    spectrum: Spectrum, alphas: FloatArray, executor: Executor, *, numbers: int = 1 << 22
) -> FloatArray:
    """Score each document by the model trained without its query.

    Parameters
    ----------
    spectrum : Spectrum
    alphas : array
        Positive.
    executor : Executor
    numbers : int
        Size of the rows that are one unit of work.

    Returns
    -------
    array of shape (n_alphas, documents)
        In grouped order.
    """
    alphas = np.asarray(alphas, dtype=np.float64)

    ranges = row_ranges(spectrum.centred, len(spectrum.values), numbers)
    parts = executor.map(lambda r: _scores_of_range(spectrum, alphas, r[0], r[1]), ranges)
    return np.concatenate([np.zeros((len(alphas), 0)), *parts], axis=1)


def _scores_of_range(spectrum: Spectrum, alphas: FloatArray, r0: int, r1: int) -> FloatArray:
    ptr = spectrum.centred.query_ptr
    first = int(ptr[r0])
    rows, outer = spectrum.block(r0, r1)
    target = spectrum.centred.target
    inverse = 1.0 / (spectrum.values + alphas[:, None])  # alphas × basis
    scores = np.zeros((len(alphas), len(rows)))
    only = spectrum.centred.only_query
    for q in range(r0, r1):
        mine = slice(int(ptr[q]) - first, int(ptr[q + 1]) - first)
        if mine.start == mine.stop or q == only:  # without the only query, the model is empty
            continue
        B, b = rows[mine], target[first + mine.start : first + mine.stop]
        if spectrum.is_dual:
            held = _left_out_dual(B, spectrum.target, inverse, alphas)
        elif len(B) <= len(spectrum.values):
            held = _left_out_few(B, b, spectrum.target, inverse)
        else:
            held = _left_out_many(B, b, spectrum.target, inverse, spectrum.values, alphas)
        model = inverse * (spectrum.target - held @ B)
        scores[:, mine] = model @ outer[mine].T
    return scores


def _left_out_dual(
    B: FloatArray, target: FloatArray, inverse: FloatArray, alphas: FloatArray
) -> FloatArray:
    """Solve for p_q with M_q = B diag(alpha / (s + alpha)) Bᵀ: a sum without cancellation."""
    share = alphas[:, None] * inverse
    blocks = np.stack([(B * d) @ B.T for d in share])
    return _solve(blocks, (share * target) @ B.T)


def _left_out_few(
    B: FloatArray, b: FloatArray, target: FloatArray, inverse: FloatArray
) -> FloatArray:
    """Solve for p_q with a matrix as large as the query."""
    blocks = np.stack([np.eye(len(B)) - (B * d) @ B.T for d in inverse])
    return _solve(blocks, b - (inverse * target) @ B.T)


def _left_out_many(
    B: FloatArray,
    b: FloatArray,
    target: FloatArray,
    inverse: FloatArray,
    values: FloatArray,
    alphas: FloatArray,
) -> FloatArray:
    """Solve for p_q with a matrix as large as the basis, by Woodbury's identity."""
    residual = b - (inverse * target) @ B.T
    rest = np.diag(values) - B.T @ B  # AᵀA of the other queries
    blocks = rest + alphas[:, None, None] * np.eye(len(values))
    return residual + _solve(blocks, residual @ B) @ B.T


def _solve(blocks: FloatArray, right: FloatArray) -> FloatArray:
    """Solve one positive definite system per alpha; numerically singular ones by least squares."""
    try:
        solved: FloatArray = np.linalg.solve(blocks, right[..., None])[..., 0].astype(np.float64)
        return solved
    except np.linalg.LinAlgError:
        return np.stack(
            [
                np.linalg.lstsq(block, r, rcond=None)[0]
                for block, r in zip(blocks, right, strict=True)
            ]
        )
