"""ListNet with the first two draws: the probability of every ordered pair of documents.

A document is drawn with probability proportional to m_i e^{u_i}, then another from what is left. A
document of weight m stands for m copies, so max(m − 1, 0) of it stay. With P_i the target's first
draw and P_{j|i} its second, the cross entropy of a query is

    ℓ_q(u) = log Z(u) + Σ_i P_i log Z_{−i}(u) − Σ_j (P_j + Σ_i P_i P_{j|i}) u_j,

Z_{−i} the mass after i was drawn: convex, and linear in time, because Z_{−i} = Z − e^{u_i} loses no
digits except for the document of the largest mass, which is summed apart. The Hessian is a sum of
n + 1 covariances and is offered as a product. Only the dual value, the entropies of n + 1 mixtures,
takes O(n²) time for a query of n documents.
"""

# mypy: disable-error-code="no-untyped-call, no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, FloatArray
from leanrank.errors import InputError
from leanrank.losses.base import Labels, Loss, Plan
from leanrank.losses.listnet import first_draws, lift, listwise_queries, target_scores

MOST_DOCUMENTS = 50_000
"""Documents of a query up to which a certificate in quadratic time is worth waiting for."""


@dataclass(frozen=True)
class TopTwoPlan(Plan):
    """What the labels ask for in two draws; each query is one cell.

    Attributes
    ----------
    mass, drawn : array
        Document weights m, and what a draw takes away of them; lifted, so that costs are positive.
    scores : array
        The scores whose draws are the target.
    first : array
        The query's factor times P_i.
    target : array
        The query's factor times P_j + Σ_i P_i P_{j|i}.
    """

    mass: FloatArray
    drawn: FloatArray
    scores: FloatArray
    first: FloatArray
    target: FloatArray


class ListNetTopTwoLoss(Loss[TopTwoPlan]):
    """Cross entropy between the top-two probabilities of labels and of scores.

    Parameters
    ----------
    target : {"label", "gain"}, default="label"
        Documents are drawn by the softmax of the labels, or of 2^label − 1.
    """

    name: ClassVar[str] = "listnet-top-two"

    def __init__(self, target: str = "label") -> None:
        self.target = target

    def prepare(self, labels: Labels) -> TopTwoPlan:
        """Compute the target distributions of each query, once."""
        if labels.gain_weight is not None:
            raise InputError(
                "gain_weight weighs single documents, which the top-two loss does not single out: "
                "use top=1, sample_weight or query_weight"
            )
        longest = int(np.diff(labels.query_ptr).max(initial=0))
        if longest > MOST_DOCUMENTS:
            raise InputError(
                f"the top-two loss certifies in time quadratic in a query's documents, and a query "
                f"has {longest}: use top=1, or shorten queries to {MOST_DOCUMENTS}"
            )
        query_of, mass, scale = listwise_queries(labels)
        ptr, n_queries = labels.query_ptr, len(scale)
        drawn = np.minimum(mass, 1.0)
        factor = np.maximum(
            lift(mass, query_of, n_queries), lift(mass - drawn, query_of, n_queries)
        )[query_of]
        mass, drawn = mass * factor, drawn * factor
        scores = target_scores(labels.y, self.target)
        first = scale[query_of] * first_draws(scores, mass, ptr)
        target = np.zeros(len(scores))
        _second_draws(ptr, mass, drawn, first, scores, target)
        return TopTwoPlan(
            query_ptr=ptr,
            scale=scale,
            offset=labels.offset,
            cell=query_of,
            cell_ptr=np.arange(n_queries + 1),
            mass=mass,
            drawn=drawn,
            scores=scores,
            first=first,
            target=first + target,
        )

    def evaluate(self, plan: TopTwoPlan, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        """Return the value over queries [r0, r1) and fill their rows of the score gradient."""
        return float(_evaluate(*_arrays(plan), r0, r1, u, g))

    def product(
        self, plan: TopTwoPlan, r0: int, r1: int, u: FloatArray, d: FloatArray, out: FloatArray
    ) -> None:
        """Fill the rows of queries [r0, r1) of the score Hessian times d."""
        rows = slice(int(plan.query_ptr[r0]), int(plan.query_ptr[r1]))
        self.products(plan, r0, r1, u, d[rows, None], out[rows, None])

    def products(
        self, plan: TopTwoPlan, r0: int, r1: int, u: FloatArray, D: FloatArray, out: FloatArray
    ) -> None:
        """Fill the score Hessian times the columns of D; D and out have these queries' rows."""
        _products(*_arrays(plan), r0, r1, u, D, out)

    def dual(self, plan: TopTwoPlan, r0: int, r1: int, u: FloatArray, a: float) -> float:
        """Return the dual value at a·g: every draw mixed with its target, 1 − a of it."""
        offset = np.zeros(0) if plan.offset is None else plan.offset
        return float(_dual(*_arrays(plan), r0, r1, u, a, plan.scores, offset))


def _arrays(plan: TopTwoPlan) -> tuple[AnyArray, ...]:
    return plan.query_ptr, plan.scale, plan.mass, plan.drawn, plan.first, plan.target


@kernel
def _evaluate(query_ptr, scale, mass, drawn, first, target, r0, r1, u, g):
    value = 0.0
    for q in range(r0, r1):
        rows = slice(query_ptr[q], query_ptr[q + 1])
        if scale[q] == 0.0:
            g[rows] = 0.0
            continue
        value += _gradient(
            mass[rows], drawn[rows], first[rows], target[rows], scale[q], u[rows], g[rows]
        )
    return value


@kernel
def _products(query_ptr, scale, mass, drawn, first, target, r0, r1, u, D, out):
    start = query_ptr[r0]
    for q in range(r0, r1):
        rows = slice(query_ptr[q], query_ptr[q + 1])
        here = slice(query_ptr[q] - start, query_ptr[q + 1] - start)
        if scale[q] == 0.0:
            out[here] = 0.0
            continue
        m, c, P = mass[rows], drawn[rows], first[rows]
        draws = _masses(m, c, u[rows])
        for f in range(D.shape[1]):
            _hessian_times(m, c, P, scale[q], draws, D[here, f], out[here, f])


@kernel
def _dual(query_ptr, scale, mass, drawn, first, target, r0, r1, u, a, scores, offset):
    value = 0.0
    for q in range(r0, r1):
        if scale[q] == 0.0:
            continue
        rows = slice(query_ptr[q], query_ptr[q + 1])
        m, c, P = mass[rows], drawn[rows], first[rows]
        n = len(m)
        e, left, most, rest, _ = _masses(m, c, u[rows])
        f, wanted_left, wanted_most, wanted_rest, _ = _masses(m, c, scores[rows])
        total = _dot(m, e)
        for i in range(n):
            if m[i] > 0.0:
                value += scale[q] * _entropy(
                    a * m[i] * e[i] / total + (1 - a) * P[i] / scale[q], m[i]
                )
            if P[i] == 0.0:
                continue
            entropy = 0.0
            for j in range(n):
                kept = m[j] - c[j] if i == j else m[j]
                if kept > 0.0:
                    drawn_next = rest[j] if i == most else e[j] / left[i]
                    wanted = wanted_rest[j] if i == wanted_most else f[j] / wanted_left[i]
                    entropy += _entropy(kept * (a * drawn_next + (1 - a) * wanted), kept)
            value += P[i] * entropy
        if len(offset) > 0:
            g = np.empty(n)
            _gradient(m, c, P, target[rows], scale[q], u[rows], g)
            value -= a * _dot(g, offset[rows])
    return value


@kernel
def _second_draws(query_ptr, mass, drawn, first, scores, out):
    for q in range(len(query_ptr) - 1):
        rows = slice(query_ptr[q], query_ptr[q + 1])
        m = mass[rows]
        if len(m) > 0 and m.max() > 0.0:
            e, left, most, rest, _ = _masses(m, drawn[rows], scores[rows])
            _add_second(m, drawn[rows], first[rows], e, left, most, rest, out[rows])


@kernel
def _gradient(m, c, P, target, scale, u, g):
    """Return the value of one query and fill its gradient."""
    e, left, most, rest, log_left = _masses(m, c, u)
    total = _dot(m, e)
    value = scale * math.log(total)
    for i in range(len(u)):
        if m[i] > 0.0:
            log_next = log_left if i == most else math.log(left[i])
            value += P[i] * log_next - target[i] * (u[i] - u[most])
        g[i] = scale * m[i] * e[i] / total - target[i]
    _add_second(m, c, P, e, left, most, rest, g)
    return value


@kernel
def _hessian_times(m, c, P, scale, draws, d, out):
    """Fill the Hessian of one query times d."""
    e, left, most, rest, _ = draws
    n = len(d)
    total = _dot(m, e)
    mean = 0.0
    for i in range(n):
        mean += m[i] * e[i] / total * d[i]
    away_sum = 0.0
    rest_mean = 0.0
    for j in range(n):
        away_sum += m[j] * e[j] * (d[j] - mean)
        rest_mean += (m[j] - c[j] if j == most else m[j]) * rest[j] * (d[j] - mean)
    zeroth = 0.0
    first_order = 0.0
    for i in range(n):
        if i != most and P[i] > 0.0:
            share = P[i] / left[i]
            zeroth += share
            first_order += share * (away_sum - c[i] * e[i] * (d[i] - mean)) / left[i]
    for j in range(n):
        away = d[j] - mean
        out[j] = scale * m[j] * e[j] / total * away + m[j] * e[j] * (zeroth * away - first_order)
        kept = m[j]
        if j == most:
            kept -= c[j]
        elif P[j] > 0.0:
            own_mean = (away_sum - c[j] * e[j] * away) / left[j]
            out[j] -= c[j] * e[j] * P[j] / left[j] * (away - own_mean)
        out[j] += P[most] * kept * rest[j] * (away - rest_mean)


@kernel
def _add_second(m, c, P, e, left, most, rest, out):
    """Add Σ_i P_i × the probability of being drawn after i."""
    share = 0.0
    for i in range(len(m)):
        if i != most and P[i] > 0.0:
            share += P[i] / left[i]
    for j in range(len(m)):
        out[j] += m[j] * e[j] * share
        kept = m[j]
        if j == most:
            kept -= c[j]
        elif P[j] > 0.0:
            out[j] -= c[j] * e[j] * P[j] / left[j]
        out[j] += P[most] * kept * rest[j]


@kernel
def _masses(m, c, u):
    """Give what one query's draws need.

    The exponentials e relative to the document ``most`` of the largest mass; the mass ``left``
    after each draw but that one; after that one, each copy's probability ``rest`` and the log of
    what is left.
    """
    n = len(u)
    most = 0
    largest = -math.inf
    for i in range(n):
        if m[i] > 0.0 and u[i] + math.log(m[i]) > largest:
            largest = u[i] + math.log(m[i])
            most = i
    e = np.zeros(n)
    total = 0.0
    top = -math.inf
    for i in range(n):
        if m[i] > 0.0:
            e[i] = math.exp(u[i] - u[most])
            total += m[i] * e[i]
            if i != most or m[i] > c[i]:
                top = max(top, u[i])
    left = np.empty(n)
    rest = np.zeros(n)
    remaining = 0.0
    for i in range(n):
        left[i] = total - c[i] * e[i]
        if m[i] > 0.0 and (i != most or m[i] > c[i]):
            rest[i] = math.exp(u[i] - top)
            remaining += (m[i] - c[i] if i == most else m[i]) * rest[i]
    for i in range(n):
        rest[i] /= remaining
    return e, left, most, rest, top - u[most] + math.log(remaining)


@kernel
def _entropy(probability, mass):
    return -probability * math.log(probability / mass) if probability > 0.0 else 0.0


@kernel
def _dot(one, other):
    total = 0.0
    for i in range(len(one)):
        total += one[i] * other[i]
    return total
