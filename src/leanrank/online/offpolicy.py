"""Estimate the clicks of a new ranker from the log of another: counterfactual evaluation.

The log is a table with one row per document shown, as ``leanrank.data.read_clicks`` reads it:

========== =======================================================================================
session    identifier of the list (one session and query is one list)
query      identifier of the query
document   identifier of the document
position   its rank, from 1
clicked    0 or 1
propensity probability of the document at this position, given the documents above it: 1 if the
           serving system does not randomise; their product is the probability of the list
*features* any other columns, unless the features come from a table of their own, joined by query
           and document
========== =======================================================================================

The new ranker is deterministic. A click at rank r of a list would be the same under the new ranker
if both systems agree on what the user had seen by then. It counts with a weight of mean 1, if the
old system could have shown the list of the new ranker. What the user had seen is an assumption:

cascade
    Users read from the top: a click may depend on the documents and clicks at r and above, never on
    those below. That holds for every ``ClickModel``. Both systems must agree on ranks 1 to r, and
    w_r = Π_{i ≤ r} 1[same document at i] / propensity_i.
position
    A click depends only on the document and its rank, as in the position-based model. Both systems
    must agree at rank r, and w_r = 1[same document at r] / share of the query's lists that show it
    there. This needs no propensities and far fewer lists, and is biased for users who stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from leanrank._typing import FloatArray, IntArray
from leanrank.data.clicks.click_log import ClickLog
from leanrank.data.grouping import one_dimensional
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, check_choice, warn
from leanrank.model.scoring import rank_within_queries
from leanrank.online.users import ClickModel, by_rank, shown_lists

ASSUMPTIONS = ("cascade", "position")
DISCOUNTS = ("none", "log")
MIN_EFFECTIVE = 100.0
"""Number of effective lists below which intervals are too narrow."""


@dataclass(frozen=True)
class Estimate:
    """A mean per list with its standard error and 95% interval, from the normal distribution."""

    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class PolicyValue:
    """The value of a ranker, estimated from the lists of another.

    Attributes
    ----------
    estimates : dict of str to Estimate
        ``ips``, ``clipped``, ``self-normalised`` and ``doubly-robust``.
    logged : Estimate
        The value of the system that served the lists.
    n_lists : int
    effective_lists : float
        The number of lists of equal weight with the same precision.
    mean_weight : array
        By rank. Far below 1 where the old system never showed the documents of the new ranker.
    depth : int
    assume : str
    discount : str
    clip : float
    per_list : dict of str to array
        The contribution of each list to the mean of each estimate.
    """

    estimates: dict[str, Estimate]
    logged: Estimate
    n_lists: int
    effective_lists: float
    mean_weight: FloatArray
    depth: int
    assume: str
    discount: str
    clip: float
    per_list: dict[str, FloatArray]

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for JSON."""
        out = {name: getattr(self, name) for name in self.__dataclass_fields__}
        del out["per_list"]
        out["estimates"] = {name: vars(one) for name, one in self.estimates.items()}
        return out | {"logged": vars(self.logged), "mean_weight": self.mean_weight.tolist()}

    def __repr__(self) -> str:
        kind = "clicks" if self.discount == "none" else "discounted clicks"
        lines = [
            f"PolicyValue: {kind} per list, ranks 1 to {self.depth}, {self.n_lists:,} lists of "
            f"which {self.effective_lists:,.0f} are effective"
        ]
        for name, one in [("logged", self.logged), *self.estimates.items()]:
            lines.append(f"  {name:<15}  {one.value:.4f}  ({one.low:.4f} to {one.high:.4f})")
        return "\n".join(lines)


def evaluate_policy(
    clicks: ClickLog,
    scores: Any,
    *,
    depth: int = 10,
    assume: str = "cascade",
    discount: str = "none",
    clip: float | None = None,
) -> PolicyValue:
    """Estimate the clicks of a new ranker from lists that another system served.

    Parameters
    ----------
    clicks : ClickLog
        With propensities: ``read_clicks(log, features, propensity="propensity",
        keep_unshown=True)``. Without ``keep_unshown`` the new ranker ranks only documents that were
        shown at some time.
    scores : array-like
        The new ranker's scores, one per row of ``clicks.data``: ``model.predict(clicks.data)``.
    depth : int, default=10
        Ranks that count, at most those shown.
    assume : {"cascade", "position"}, default="cascade"
        What a click may depend on; see ``leanrank.online.offpolicy``.
    discount : {"none", "log"}, default="none"
        "none": the value of a list is its number of clicks; "log": a click at rank r is worth
        1/log2(1 + r).
    clip : float, optional
        Largest weight of the clipped estimate; by default √n_lists (Ionides 2008).

    Returns
    -------
    PolicyValue
        - ``ips``: unbiased; its spread grows with the weights.
        - ``clipped``: less spread, too low on average.
        - ``self-normalised``: clicks per unit of weight, rank by rank; biased by 1/n.
        - ``doubly-robust``: a position-based click model, fitted to the other half of the lists,
          predicts the clicks, and the weights correct its errors; unbiased.

    Warns
    -----
    DataWarning
        With fewer than 100 effective lists. The intervals are then too narrow.

    Examples
    --------
    >>> log = {  # the old system swaps two documents half of the time
    ...     "session": np.repeat(np.arange(400), 2), "query": ["q"] * 800,
    ...     "document": ["a", "b"] * 200 + ["b", "a"] * 200, "position": [1, 2] * 400,
    ...     "clicked": [1, 0, 0, 0] * 100 + [0, 1, 0, 1] * 100, "propensity": [0.5, 1.0] * 400,
    ...     "quality": [1.0, 0.0] * 200 + [0.0, 1.0] * 200,
    ... }
    >>> from leanrank.data import read_clicks
    >>> clicks = read_clicks(log, propensity="propensity")
    >>> value = evaluate_policy(clicks, -clicks.X[:, 0])  # b above a
    >>> round(value.estimates["ips"].value, 2), round(value.logged.value, 2)
    (1.0, 0.75)
    """
    check_choice("discount", discount, DISCOUNTS)
    check_choice("assume", assume, ASSUMPTIONS)
    if clip is not None and not clip >= 1:
        raise InputError(f"clip={clip!r} is below the mean weight: give 1 or more")
    values = np.asarray(one_dimensional(scores, "scores", len(clicks.data)), dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError("scores holds a number that is not finite: give one score per document")
    shown, clicked = shown_lists(clicks)
    shown, clicked = shown[:, :depth], clicked[:, :depth]
    n, k = shown.shape
    if n < 2:
        raise InputError("the log has one list, but the spread needs several: give at least 2")
    query = np.searchsorted(clicks.data.query_ptr, clicks.row[clicks.list_ptr[:-1]], "right") - 1
    target = _rankings(clicks.data, values, k)[query]
    weight = _weights(clicks, shown, target, assume)
    worth = np.ones(k) if discount == "none" else 1.0 / np.log2(np.arange(2.0, k + 2.0))
    gain = clicked * worth
    limit = float(np.sqrt(n)) if clip is None else float(clip)
    mean_weight = weight.mean(axis=0)
    held = np.maximum(mean_weight, 1e-300)
    per_rank = (weight * gain).mean(axis=0) / held  # clicks per unit of weight
    influence = (weight * (gain - per_rank) / held).sum(axis=1)
    total = (weight * worth).sum(axis=1)
    effective = float(total.sum() ** 2 / max((total**2).sum(), 1e-300))
    if effective < MIN_EFFECTIVE:
        warn(
            f"only {effective:.1f} of {n:,} lists are effective: the old system seldom showed the "
            "lists of this ranker, so the intervals are too narrow: log more lists, randomise "
            "more, or lower depth"
        )
    robust = _doubly_robust(shown, clicked, target, weight, len(clicks.data), assume)
    per_list = {
        "ips": (weight * gain).sum(axis=1),
        "clipped": (np.minimum(weight, limit) * gain).sum(axis=1),
        "self-normalised": per_rank.sum() + influence,
        "doubly-robust": robust @ worth,
    }
    estimates = {name: _estimate(values) for name, values in per_list.items()}
    logged = _estimate(gain.sum(axis=1))
    return PolicyValue(
        estimates, logged, n, effective, mean_weight, k, assume, discount, limit, per_list
    )


def _weights(clicks: ClickLog, shown: IntArray, target: IntArray, assume: str) -> FloatArray:
    same = shown == target
    if assume == "cascade":
        if clicks.propensity is None:
            raise InputError(
                "the click log has no propensities: read it with propensity= and the name of their "
                "column, which is 1 where the system did not randomise, or assume='position'"
            )
        chance = by_rank(clicks, clicks.propensity, 1.0)[:, : shown.shape[1]]
        return np.asarray(np.cumprod(np.where(same, 1.0 / chance, 0.0), axis=1), dtype=np.float64)
    n_documents, k = len(clicks.data), shown.shape[1]
    lists = np.repeat(clicks.lists_per_query, np.diff(clicks.data.query_ptr))
    cell = np.where(shown >= 0, shown, n_documents) * k + np.arange(k)  # an empty place at the end
    times = np.bincount(cell.ravel(), minlength=(n_documents + 1) * k)[cell]
    share = times / np.append(lists, 1)[shown]
    return np.where(same, np.where(shown >= 0, 1.0 / share, 1.0), 0.0)


def _doubly_robust(
    shown: IntArray,
    clicked: Any,
    target: IntArray,
    weight: FloatArray,
    n_documents: int,
    assume: str,
) -> FloatArray:
    """Return the estimated clicks of each list and rank.

    With q the predicted clicks, rank r counts v q(new at r) + w_r (click − q(shown at r)), v being
    w_{r−1} in a cascade, and 1 by position.
    """
    before = np.ones(weight.shape)
    if assume == "cascade":
        before[:, 1:] = weight[:, :-1]
    out = np.empty(weight.shape)
    ranks = np.arange(weight.shape[1])
    start = ClickModel.position_based(np.full(n_documents, 0.5), examine=1.0 / (1.0 + 0.5 * ranks))
    for half in (0, 1):  # predictions come from the other half, so that they are independent
        learn, use = slice(half, None, 2), slice(1 - half, None, 2)
        model = start.fit((shown[learn], clicked[learn]), tol=1e-5)
        look, attract = model.examine[:, 0], np.append(model.click, 0.0)  # −1: nothing there
        residual = clicked[use] - look * attract[shown[use]]
        out[use] = before[use] * (look * attract[target[use]]) + weight[use] * residual
    return out


def _rankings(data: RankingData, scores: FloatArray, depth: int) -> IntArray:
    """Return the rows of the best documents of each query, −1 past the last; ties in row order."""
    query = np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))
    rank = rank_within_queries(scores, data.qid)
    out = np.full((data.n_queries, depth), -1, dtype=np.int64)
    top = np.flatnonzero(rank <= depth)
    out[query[top], rank[top] - 1] = top
    return out


def _estimate(values: FloatArray) -> Estimate:
    mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    half = float(norm.ppf(0.975)) * error
    return Estimate(mean, error, mean - half, mean + half)
