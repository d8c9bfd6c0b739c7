"""Cross entropy of the softmax of the scores and a target distribution over a query's documents.

ListNet (Cao et al. 2007) takes the softmax of the labels, or of their gains 2^y − 1, as the target.
The *softmax loss* takes the gains themselves: P_i ∝ m_i·gain_i. With m the document weights and
p_i = m_i e^{u_i} / Σ m_j e^{u_j}, a query costs

    ℓ_q(u) = −Σ_i P_i log(p_i / m_i) = log Σ_j m_j e^{u_j} − Σ_i P_i u_i,

one term per query (T_q = 1). It is never below the entropy of the target. The score Hessian is
diag(p) − p pᵀ: one atom per document, one cell per query. A query with one level, or whose gains
are all equal, carries no information and is skipped.

The dual value at the scaled score gradient a·g, g = p − P, is the entropy of the mixture
r = a p + (1 − a) P, which is a distribution for any a in [0, 1]: −Σ r_i log(r_i / m_i) − a⟨s, g⟩.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.ranking_data import informative_queries
from leanrank.errors import InputError, check_choice
from leanrank.losses.base import Curvature, Labels, Loss, Plan, query_scale

TARGETS = ("label", "gain", "gains")
GAINS = ("exp2", "linear")


@dataclass(frozen=True)
class ListNetPlan(Plan):
    """The weights and the target of each query; a query is one cell.

    Attributes
    ----------
    mass : array
        Document weights m, times the factor of ``lift``; 0 in queries that do not count.
    target : array
        P_i times the query's factor and the gain weight.
    total : array
        The sum of ``target`` over each query.
    """

    mass: FloatArray
    target: FloatArray
    total: FloatArray


class ListNetLoss(Loss[ListNetPlan]):
    """Cross entropy of the top-one probabilities of labels and of scores.

    Parameters
    ----------
    target : {"label", "gain", "gains"}, default="label"
        P is the softmax of the labels, the softmax of 2^label − 1, or proportional to 2^label − 1.
    """

    name: ClassVar[str] = "listnet"
    n_atoms: ClassVar[int] = 1
    n_aux: ClassVar[int] = 1

    def __init__(self, target: str = "label") -> None:
        self.target = target

    def prepare(self, labels: Labels) -> ListNetPlan:
        """Return the plan with the target distribution of each query."""
        if self.target == "gains":
            return SoftmaxLoss().prepare(labels)
        query_of, mass, scale = listwise_queries(labels)
        mass = mass * lift(mass, query_of, len(scale))[query_of]
        scores = target_scores(labels.y, self.target)
        target = first_draws(scores, mass, labels.query_ptr)
        target *= scale[query_of]
        if labels.gain_weight is not None:
            target = target * labels.gain_weight
        return _plan(labels, query_of, mass, scale, target)

    def evaluate(self, plan: ListNetPlan, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        """Return the value over queries [r0, r1) and fill their rows of the score gradient."""
        return float(_evaluate(*_arrays(plan), r0, r1, u, g))

    def curvature(self, plan: ListNetPlan, r0: int, r1: int, u: FloatArray, out: Curvature) -> None:
        """Fill the atoms p, the diagonal total·p and the total."""
        rows = slice(int(plan.query_ptr[r0]), int(plan.query_ptr[r1]))
        ptr = plan.query_ptr[r0 : r1 + 1] - rows.start
        out.atoms[rows, 0] = first_draws(u[rows], plan.mass[rows], ptr)
        out.aux[r0:r1, 0] = plan.total[r0:r1]
        out.diag[rows] = out.atoms[rows, 0] * plan.total[plan.cell[rows]]

    def fold(
        self, plan: ListNetPlan, r0: int, r1: int, aux: FloatArray, sums: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the factors of the low-rank part from the mean features of each query."""
        del plan
        mean = sums[:, 0]
        return mean * (0.5 * aux[r0:r1]), mean

    def product(
        self, plan: ListNetPlan, r0: int, r1: int, u: FloatArray, d: FloatArray, out: FloatArray
    ) -> None:
        """Fill the rows of queries [r0, r1) of the score Hessian times d."""
        _product(*_arrays(plan), r0, r1, u, d, out)

    def dual(self, plan: ListNetPlan, r0: int, r1: int, u: FloatArray, a: float) -> float:
        """Return the dual value at r = a·p + (1 − a)·P, which is feasible when |Xᵀ a g| ≤ λ."""
        offset = np.zeros(0) if plan.offset is None else plan.offset
        return float(_dual(*_arrays(plan), r0, r1, u, a, offset))


class SoftmaxLoss(ListNetLoss):
    """Cross entropy with the gains of the documents as target: P_i ∝ gain_i.

    It is an upper bound of the loss of NDCG (Bruch et al. 2019). A gain weight multiplies the gain
    of its document.

    Parameters
    ----------
    gain : {"exp2", "linear"} or sequence of float, default="exp2"
        The gain of a label y: 2^y − 1, y itself (clicks over propensities, mean ratings), or the
        entry y of a sequence.
    emphasis : float, default=0.0
        A query is weighted by this power of its total gain: with 0 all queries count the same, with
        1 in proportion to their total gain.

    Examples
    --------
    >>> labels = Labels(np.array([0.0, 1.0, 2.0]), np.array([0, 3]))
    >>> SoftmaxLoss().prepare(labels).target.tolist()
    [0.0, 0.25, 0.75]
    """

    name: ClassVar[str] = "softmax"

    def __init__(self, gain: str | Sequence[float] = "exp2", emphasis: float = 0.0) -> None:
        self.gain, self.emphasis = gain, emphasis

    def prepare(self, labels: Labels) -> ListNetPlan:
        """Return the plan; the target is the share of each document in its query's total gain."""
        gains = self._gains(labels)
        query_of, mass, scale = listwise_queries(self.weighed(labels), gains)
        target = mass * gains
        total = np.bincount(query_of, target, minlength=len(scale))[query_of]
        target = np.divide(target, total, out=np.zeros(len(target)), where=total > 0)
        mass = mass * lift(mass, query_of, len(scale))[query_of]
        return _plan(labels, query_of, mass, scale, scale[query_of] * target)

    def _gains(self, labels: Labels) -> FloatArray:
        gains = gains_of(labels.y, self.gain)
        return gains if labels.gain_weight is None else gains * labels.gain_weight

    def weighed(self, labels: Labels) -> Labels:
        """Return labels with query weights times a power of the queries' total gains."""
        if self.emphasis == 0.0:
            return labels
        gains = self._gains(labels)
        weight = np.ones(len(gains)) if labels.sample_weight is None else labels.sample_weight
        running = np.concatenate(([0.0], np.cumsum(weight * gains)))
        ptr = labels.query_ptr
        total = np.maximum(running[ptr[1:]] - running[ptr[:-1]], 0.0)
        given = 1.0 if labels.query_weight is None else labels.query_weight
        return replace(labels, query_weight=given * total**self.emphasis)

    @property
    def unweighed(self) -> SoftmaxLoss:
        """The same loss with ``emphasis=0``."""
        return SoftmaxLoss(self.gain)


def gains_of(y: FloatArray, gain: str | Sequence[float]) -> FloatArray:
    """Return the gain of each label.

    >>> gains_of(np.array([0.0, 1.0, 3.0]), "exp2").tolist()
    [0.0, 1.0, 7.0]
    >>> gains_of(np.array([0.0, 1.0, 2.0]), [0, 1, 5]).tolist()
    [0.0, 1.0, 5.0]
    """
    if isinstance(gain, str):
        check_choice("gain", gain, GAINS)
        if gain == "exp2" and np.max(y, initial=0.0) >= 1024.0:
            raise InputError(
                f"gain='exp2' cannot raise 2 to the label {np.max(y):g}: use gain='linear'"
            )
        gains = np.exp2(y) - 1.0 if gain == "exp2" else np.asarray(y, np.float64)
    else:
        table = np.asarray(gain, dtype=np.float64)
        known = (y >= 0) & (y < len(table)) & (y == np.floor(y))
        if table.ndim != 1 or not known.all():
            worst = y[~known][0] if not known.all() else gain
            raise InputError(
                f"gain has {table.size} entries but there is a label {worst}: give one gain for "
                "each of the labels 0, 1, 2, …"
            )
        gains = table[y.astype(np.int64)]
    wrong = ~(np.isfinite(gains) & (gains >= 0.0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"the label {y[row]:g} has the gain {gains[row]:g}: gains must be finite and not "
            "negative, so choose another gain"
        )
    return gains


def listwise_queries(
    labels: Labels, values: FloatArray | None = None
) -> tuple[Any, FloatArray, FloatArray]:
    """Return the query and the weight of each row, and the factor of each query.

    A query counts if its documents differ in ``values``, by default the labels; in others the
    weights are 0.
    """
    ptr = labels.query_ptr
    n_queries = len(ptr) - 1
    query_of = np.repeat(np.arange(n_queries), np.diff(ptr))
    weight = np.ones(len(labels.y)) if labels.sample_weight is None else labels.sample_weight
    present = np.where(weight > 0, labels.y if values is None else values, np.nan)
    terms = informative_queries(present, ptr).astype(np.float64)
    scale = query_scale(terms, labels.query_weight, labels.normalize)
    return query_of, np.where(terms[query_of] > 0, weight, 0.0), scale


def lift(mass: FloatArray, query_of: Any, n_queries: int) -> FloatArray:
    """Return the factor of each query that makes all its positive masses at least 1.

    The factor adds a constant to the loss of a query. Without it, weights below 1 could make the
    loss negative, and a relative duality gap would be meaningless.

    >>> lift(np.array([0.5, 2.0, 0.0, 3.0]), np.array([0, 0, 1, 1]), 2).tolist()
    [2.0, 1.0]
    """
    least = np.ones(n_queries)
    counted = mass > 0
    np.minimum.at(least, query_of[counted], mass[counted])
    return 1.0 / least


def target_scores(y: FloatArray, target: str) -> FloatArray:
    """Return the scores whose softmax is the target.

    >>> target_scores(np.array([0.0, 1.0, 2.0]), "gain").tolist()
    [0.0, 1.0, 3.0]
    """
    check_choice("target", target, TARGETS)
    if target == "label":
        return y
    if np.max(y, initial=0.0) >= 1024.0:
        raise InputError(
            f"target='gain' cannot raise 2 to the label {np.max(y):g}: use target='label' or "
            "smaller labels"
        )
    return np.exp2(y) - 1.0


def first_draws(scores: FloatArray, mass: FloatArray, query_ptr: Any) -> FloatArray:
    """Compute the softmax of scores with weights, within each query; 0 where the weight is 0."""
    out, n_queries = np.zeros(len(scores)), len(query_ptr) - 1
    _evaluate(query_ptr, mass, np.zeros(len(scores)), np.ones(n_queries), 0, n_queries, scores, out)
    return out  # the gradient where nothing is aimed at


def _plan(
    labels: Labels, query_of: Any, mass: FloatArray, scale: FloatArray, target: FloatArray
) -> ListNetPlan:
    return ListNetPlan(
        query_ptr=labels.query_ptr,
        scale=scale,
        offset=labels.offset,
        cell=query_of,
        cell_ptr=np.arange(len(scale) + 1),
        mass=mass,
        target=target,
        total=np.bincount(query_of, target, minlength=len(scale)).astype(np.float64),
    )


def _arrays(plan: ListNetPlan) -> tuple[AnyArray, ...]:
    return plan.query_ptr, plan.mass, plan.target, plan.total


@kernel
def _evaluate(
    query_ptr: IntArray, mass: FloatArray, target: FloatArray, total: FloatArray, r0: int, r1: int,
    u: FloatArray, g: FloatArray,
) -> float:  # fmt: skip
    value = 0.0
    for q in range(r0, r1):
        begin, end = query_ptr[q], query_ptr[q + 1]
        top, log_sum = _softmax(mass, begin, end, u, g)
        cost = 0.0
        for i in range(begin, end):
            if target[i] > 0.0:  # in this order, no digits are lost for large scores
                cost += target[i] * (log_sum - (u[i] - top))
            g[i] = total[q] * g[i] - target[i]
        value += cost
    return value


@kernel
def _product(
    query_ptr: IntArray, mass: FloatArray, target: FloatArray, total: FloatArray, r0: int, r1: int,
    u: FloatArray, d: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    for q in range(r0, r1):
        begin, end = query_ptr[q], query_ptr[q + 1]
        _softmax(mass, begin, end, u, out)
        mean = 0.0
        for i in range(begin, end):
            mean += out[i] * d[i]
        for i in range(begin, end):
            out[i] *= total[q] * (d[i] - mean)


@kernel
def _dual(
    query_ptr: IntArray, mass: FloatArray, target: FloatArray, total: FloatArray, r0: int, r1: int,
    u: FloatArray, a: float, offset: FloatArray,
) -> float:  # fmt: skip
    value, p = 0.0, np.zeros(len(u))
    for q in range(r0, r1):
        begin, end = query_ptr[q], query_ptr[q + 1]
        if total[q] == 0.0:
            continue
        _softmax(mass, begin, end, u, p)
        for i in range(begin, end):
            if mass[i] > 0.0:
                share = target[i] / total[q]
                mixed = a * p[i] + (1.0 - a) * share
                if mixed > 0.0:
                    value -= total[q] * mixed * math.log(mixed / mass[i])
                if len(offset) > 0:
                    value -= a * total[q] * (p[i] - share) * offset[i]
    return value


@kernel
def _softmax(
    mass: FloatArray, begin: int, end: int, u: FloatArray, p: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Fill the softmax of rows [begin, end); return the top score and log Σ m e^{u − top}."""
    top = -math.inf
    for i in range(begin, end):
        if mass[i] > 0.0:
            top = max(top, u[i])
    total = 0.0
    for i in range(begin, end):
        p[i] = mass[i] * math.exp(u[i] - top) if mass[i] > 0.0 else 0.0
        total += p[i]
    if total == 0.0:
        return 0.0, 0.0
    inverse = 1.0 / total
    for i in range(begin, end):
        p[i] *= inverse
    return top, math.log(total)
