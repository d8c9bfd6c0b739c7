"""A loss of your own: users choose one document of a list (conditional logit).

With p spread evenly over the best documents of a query and s the softmax of its scores, a query
costs log Σ exp(u) − p·u, its slope in the scores is s − p, and the conjugate at a·(s − p) is
Σ q log q with q = a·s + (1 − a)·p. That is all Newton's method needs to certify the result.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import entr, xlogy

from leanrank import LinearRanker, evaluate
from leanrank.data import GlobalStandardScaler, load_sample
from leanrank.data.ranking_data import informative_queries
from leanrank.losses.base import Loss, Plan, query_scale


@dataclass(frozen=True)
class ChoicePlan(Plan):
    chosen: np.ndarray  # p

    def softmax(self, first, last, u):
        """Return the rows of some queries, their factors and the softmax of their scores."""
        rows, sizes = self.span(first, last), np.diff(self.query_ptr[first : last + 1])
        starts = self.query_ptr[first:last] - self.query_ptr[first]
        powers = np.exp(u[rows] - np.repeat(np.maximum.reduceat(u[rows], starts), sizes))
        s = powers / np.repeat(np.add.reduceat(powers, starts), sizes)
        return rows, np.repeat(self.scale[first:last], sizes), s


class ChoiceLoss(Loss[ChoicePlan]):
    name = "choice"

    def prepare(self, labels):
        if labels.offset is not None:
            raise NotImplementedError("the dual value below has no offsets")
        ptr, none = labels.query_ptr, np.zeros(0, np.int64)
        terms = informative_queries(labels.y, ptr).astype(float)  # one per query with levels
        scale = query_scale(terms, labels.query_weight, labels.normalize)
        best = labels.y == np.repeat(np.maximum.reduceat(labels.y, ptr[:-1]), np.diff(ptr))
        chosen = best / np.repeat(np.add.reduceat(best * 1.0, ptr[:-1]), np.diff(ptr))
        return ChoicePlan(ptr, scale, None, none, none, chosen)

    def evaluate(self, plan, first, last, u, g):
        rows, scale, s = plan.softmax(first, last, u)
        g[rows] = scale * (s - plan.chosen[rows])
        return -np.sum(scale * xlogy(plan.chosen[rows], s))

    def dual(self, plan, first, last, u, a):
        rows, scale, s = plan.softmax(first, last, u)
        return np.sum(scale * entr(a * s + (1 - a) * plan.chosen[rows]))


train, _, test = load_sample()
train, test = map(GlobalStandardScaler().fit(train).transform, (train, test))
ranker = LinearRanker(ChoiceLoss(), "l1", alpha=0.1).fit(train)
print(f"{np.count_nonzero(ranker.coef_)} features, duality gap {ranker.dual_gap_:.1e}")
print(evaluate(test, ranker.predict(test), measures="mrr,ndcg@1,ndcg@10"))
