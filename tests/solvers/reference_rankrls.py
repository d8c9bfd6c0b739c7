"""Slow twins of RankRLS: train again for everything."""

from __future__ import annotations

import numpy as np

from leanrank.losses.base import Labels
from leanrank.losses.squared import SquaredLoss
from leanrank.solvers.least_squares.centred import Centred


def random_problem(rng, *, n=7, sizes=None, weights=False, offset=False, normalize="none"):
    """Draw X, its queries and its prepared loss: empty queries,
    lone documents and ties included.
    """
    if sizes is None:
        sizes = [*rng.integers(0, 9, 6), 1, 0, 12]
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    m = int(ptr[-1])
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.6)
    labels = Labels(
        y=rng.integers(0, 3, m).astype(np.float64),
        query_ptr=ptr,
        sample_weight=rng.integers(0, 3, m).astype(np.float64) if weights else None,
        query_weight=rng.random(len(sizes)) + 0.5 if weights else None,
        offset=rng.normal(size=m) if offset else None,
        normalize=normalize,
    )
    return X, SquaredLoss().prepare(labels)


def centre(X, plan):
    """Compute A and b document by document."""
    A, b = np.zeros(X.shape), np.zeros(len(X))
    target = plan.y if plan.offset is None else plan.y + plan.offset
    for q in range(len(plan.query_ptr) - 1):
        rows = slice(plan.query_ptr[q], plan.query_ptr[q + 1])
        weight = plan.weight[rows]
        if weight.sum() > 0:
            root = np.sqrt(plan.scale[q] * weight)
            A[rows] = root[:, None] * (X[rows] - np.average(X[rows], axis=0, weights=weight))
            b[rows] = root * (target[rows] - np.average(target[rows], weights=weight))
    return A, b


def ridge(A, b, alpha):
    """Solve by least squares with the penalty as further rows; the system is never squared."""
    k = A.shape[1]
    if k == 0:
        return np.zeros(0)
    if alpha > 1e6:  # then the system is as good as diagonal
        return np.linalg.solve(A.T @ A + alpha * np.eye(k), A.T @ b)
    rows = np.vstack([A, np.sqrt(alpha) * np.eye(k)])
    return np.linalg.lstsq(rows, np.append(b, np.zeros(k)), rcond=None)[0]


def left_out(A, b, query_of, chosen, alpha):
    """Train without each query, and give the residual on it."""
    residual = b.copy()
    for q in np.unique(query_of):
        mine = query_of == q
        w = ridge(A[~mine][:, chosen], b[~mine], alpha)
        residual[mine] = b[mine] - A[mine][:, chosen] @ w
    return residual


def decrease(A, b, query_of, chosen, candidate, alpha):
    """By how much the leave-query-out error falls, term by term so that nothing cancels."""
    before = left_out(A, b, query_of, chosen, alpha)
    after = left_out(A, b, query_of, [*chosen, candidate], alpha)
    return float(np.sum((before - after) * (before + after)))


def centred_of(X, plan, sparse=False):
    from scipy.sparse import csr_array

    return Centred.from_plan(csr_array(X) if sparse else X, plan)


def frozen_decrease(A, b, query_of, chosen, candidate, alpha):
    """The same with the weights of the chosen features frozen at what the other queries gave."""
    gain = 0.0
    x = A[:, candidate]
    for q in np.unique(query_of):
        mine = query_of == q
        w = ridge(A[~mine][:, chosen], b[~mine], alpha)
        r = b - A[:, chosen] @ w
        v = x[~mine] @ r[~mine] / (alpha + x[~mine] @ x[~mine])
        gain += float(np.sum(v * x[mine] * (2 * r[mine] - v * x[mine])))
    return gain
