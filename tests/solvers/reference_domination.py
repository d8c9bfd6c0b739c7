"""The domination objective straight from its definition, and its optimum by a general solver."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from leanrank.execution import make_executor
from leanrank.losses.base import Labels
from leanrank.losses.domination import DominationLoss
from leanrank.problem.memory import MemoryProblem


class Reference:
    """One row a dominating document, one column a document: nothing fast, nothing shared."""

    def __init__(self, X, labels, margin=None):
        self.X = np.asarray(X.todense()) if hasattr(X, "todense") else np.asarray(X, np.float64)
        y, n = labels.y, len(labels.y)
        mass = np.ones(n) if labels.sample_weight is None else labels.sample_weight
        n_queries = len(labels.query_ptr) - 1
        omega = np.ones(n_queries) if labels.query_weight is None else labels.query_weight
        levels = np.unique(y)
        rows, owners, queries = [], [], []
        for q in range(n_queries):
            members = np.arange(labels.query_ptr[q], labels.query_ptr[q + 1])
            for i in members:
                below = members[(y[members] < y[i]) & (mass[members] > 0)]
                if len(below) == 0 or mass[i] == 0:
                    continue
                row = np.full(n, -np.inf)
                row[below] = np.log(mass[below])
                if margin is not None:
                    k = np.searchsorted(levels, y[i])
                    row[below] += margin[k, np.searchsorted(levels, y[below])]
                row[i] = 0.0
                rows.append(row)
                owners.append(i)
                queries.append(q)
        self.owner, query = np.array(owners), np.array(queries)
        self.logit = np.array(rows)
        terms = np.bincount(query, mass[self.owner], minlength=n_queries)
        informative = terms > 0
        if labels.normalize == "query":
            scale = omega / np.where(informative, terms, 1.0) / omega[informative].sum()
        elif labels.normalize == "term":
            scale = omega / (omega * terms).sum()
        else:
            scale = omega
        self.gain = scale[query] * mass[self.owner]
        if labels.gain_weight is not None:
            self.gain = self.gain * labels.gain_weight[self.owner]
        self.offset = np.zeros(n) if labels.offset is None else labels.offset

    def loss(self, w):
        """Give the loss and its gradient with respect to the weights."""
        u = self.X @ w - self.offset
        logit = self.logit + u
        top = logit.max(axis=1, keepdims=True)
        e = np.exp(logit - top)
        total = e.sum(axis=1, keepdims=True)
        value = self.gain @ (top[:, 0] + np.log(total[:, 0]) - u[self.owner])
        g = self.gain @ (e / total)
        np.subtract.at(g, self.owner, self.gain)
        return float(value), self.X.T @ g

    def objective(self, w, penalty):
        return self.loss(w)[0] + penalty.value(w)

    def optimum(self, penalty, start=None, max_iter=3000):
        """Minimise over w = p − n, p ≥ 0, n ≥ 0; give the least objective found, and where."""
        n = self.X.shape[1]

        def split(v):
            w = v[:n] - v[n:]
            value, c = self.loss(w)
            slope = c + penalty.ridge * w
            above, below = (np.where(np.isinf(x), 0.0, x) for x in (penalty.above, penalty.below))
            value += above @ v[:n] + below @ v[n:] + 0.5 * penalty.ridge @ (w * w)
            return value, np.concatenate([slope + above, below - slope])

        shut = np.isinf(np.concatenate([penalty.above, penalty.below]))
        bounds = [(0.0, 0.0) if s else (0.0, None) for s in shut]
        w = np.zeros(n) if start is None else start
        v = np.concatenate([np.maximum(w, 0), np.maximum(-w, 0)])
        for _ in range(2):  # restarts renew its memory of the curvature
            v = minimize(
                split,
                v,
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={
                    "maxiter": max_iter,
                    "maxfun": 2 * max_iter,
                    "ftol": 0.0,
                    "gtol": 1e-11,
                    "maxcor": 30,
                },
            ).x
            both = np.minimum(v[:n], v[n:])
            v -= np.concatenate([both, both])
        w = v[:n] - v[n:]
        return w, self.objective(w, penalty)


def random_labels(rng, n_queries=8, most=9, n_levels=3, weights=False, normalize="query"):
    """Queries of 1 to ``most`` documents, so that some have one document and some one level."""
    sizes = rng.integers(1, most + 1, n_queries)
    sizes[0] = most
    n = int(sizes.sum())
    y = rng.integers(0, n_levels, n).astype(float) * 1.5 - 1
    y[:n_levels] = np.arange(n_levels) * 1.5 - 1  # every level occurs
    return Labels(
        y=y,
        query_ptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        sample_weight=rng.integers(0, 4, n).astype(float) if weights else None,
        query_weight=rng.random(n_queries) + 0.5 if weights else None,
        gain_weight=rng.random(n) + 0.1 if weights else None,
        offset=None,
        normalize=normalize,
    )


def random_features(rng, n, n_features, form="dense"):
    X = rng.normal(size=(n, n_features))
    if form.startswith("sparse"):
        X[rng.random(X.shape) < 0.5] = 0.0
        return csr_array(X)
    return X


def make_problem(X, labels, n_jobs=None):
    loss = DominationLoss()
    return MemoryProblem(X, loss, loss.prepare(labels), make_executor(n_jobs))


def gradient(problem, w):
    return problem.design.rmatvec(problem.evaluate(problem.scores(w))[1])
