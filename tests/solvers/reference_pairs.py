"""Pairwise objectives with every pair written out: one row a pair, nothing fast, nothing shared."""

from __future__ import annotations

import numpy as np

from leanrank.execution import make_executor
from leanrank.problem.memory import MemoryProblem


class Pairs:
    """The differences of features over all pairs of a winner and a loser, and what they weigh."""

    def __init__(self, X, labels):
        dense = np.asarray(X.todense()) if hasattr(X, "todense") else np.asarray(X, np.float64)
        offset = np.zeros(len(dense)) if labels.offset is None else labels.offset
        y, ptr = labels.y, labels.query_ptr
        winner, loser, query = [], [], []
        for q in range(len(ptr) - 1):
            for i in range(ptr[q], ptr[q + 1]):
                for j in range(ptr[q], ptr[q + 1]):
                    if y[i] > y[j]:
                        winner.append(i)
                        loser.append(j)
                        query.append(q)
        self.differences = dense[winner] - dense[loser]
        self.shift = offset[winner] - offset[loser]
        per_query = np.bincount(query, minlength=len(ptr) - 1)
        weight = np.ones(len(winner))
        if labels.normalize == "query":
            weight = 1.0 / per_query[query] / np.count_nonzero(per_query)
        elif labels.normalize == "term":
            weight = weight / len(winner)
        self.weight = weight

    def loss(self, w, power):
        """Give the hinge (power 1) or squared hinge (2) and its gradient in the weights."""
        h = np.maximum(0.0, 1.0 - (self.differences @ w - self.shift))
        slope = -1.0 * (h > 0) if power == 1 else -2.0 * h
        return float(self.weight @ h**power), self.differences.T @ (self.weight * slope)


def problem_of(X, labels, loss, n_jobs=None):
    return MemoryProblem(X, loss, loss.prepare(labels), make_executor(n_jobs))
