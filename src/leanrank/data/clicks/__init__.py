"""Propensities of positions, and clicks weighted by them.

In the position-based model a document at position k is clicked with probability p_k · r: users
examine it with propensity p_k, and then click it with probability r, its attraction, whatever the
position. If a click at k counts 1/p_k times, the count is an unbiased estimate of attraction
(Joachims, Swaminathan & Schnabel 2017).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.clicks.click_log import ClickLog, ClickWeights, only_shown
from leanrank.data.grouping import one_dimensional
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, check_choice


def click_weights(clicks: ClickLog, propensities: Any, *, clip: float = 0.01) -> ClickWeights:
    """Return clicks weighted by the inverse propensity of their positions.

    Parameters
    ----------
    clicks : ClickLog
    propensities : array-like or mapping
        One number in (0, 1] per position from 1 on, up to a common factor; or a mapping from
        position. ``estimate_propensities(clicks)`` estimates them; ones count every click once.
    clip : float, default=0.01
        Smallest propensity relative to the largest; smaller ones are raised to it. It adds a small
        bias, and prevents that a rare click far down counts a thousandfold.

    Returns
    -------
    ClickWeights
        In the order of ``clicks.data``. A loss that normalises by query gives each query the same
        weight; ``query_weight=clicks.lists_per_query`` weights queries by popularity.

    Examples
    --------
    >>> from leanrank.data import make_clicks, make_ranking
    >>> documents = make_ranking(n_queries=20, docs_per_query=10, random_state=0)
    >>> clicks = make_clicks(documents, n_sessions=500, eta=1.0, random_state=0)
    >>> weights = click_weights(clicks, 1 / np.arange(1, 11))
    >>> bool(np.all(weights.gain_weight[weights.y == 0] == 0))
    True
    """
    if isinstance(clip, bool) or not 0 < clip <= 1:
        raise InputError(f"clip={clip!r} must be above 0 and at most 1")
    if not isinstance(propensities, Mapping):
        propensities = dict(enumerate(one_dimensional(propensities, "propensities"), start=1))
    shown = np.flatnonzero(np.bincount(clicks.position)).tolist()
    by_position = np.zeros(shown[-1] + 1)
    by_position[shown] = [propensities.get(k, np.nan) for k in shown]
    wrong = [k for k in shown if not 0 < by_position[k] < np.inf]
    if wrong:
        raise InputError(
            f"propensities is {by_position[wrong[0]]} at position {wrong[0]}, which was shown: "
            f"give one number above 0 for every position up to {shown[-1]}"
        )
    look = np.maximum(by_position / by_position.max(), clip)[clicks.position]
    n_documents = len(clicks.data)
    hits, row = clicks.clicked, clicks.row
    n_clicks = np.bincount(row[hits], minlength=n_documents)
    looks = np.bincount(row, look, minlength=n_documents)
    gain = np.bincount(row[hits], 1.0 / look[hits], minlength=n_documents)
    lists = np.repeat(clicks.lists_per_query, np.diff(clicks.data.query_ptr))
    return ClickWeights(n_clicks / looks, gain / lists)


def estimate_propensities(clicks: ClickLog) -> FloatArray:
    """Estimate the propensity of each position, relative to the first, from documents that moved.

    A document that was shown at two positions is clicked there in the ratio of their propensities,
    whatever its attraction. With n_d shows and c_d clicks of document d at k, and n'_d and c'_d at
    the position above, the estimate of the common ratio over all documents is Mantel and Haenszel's

        p_k / p_{k−1} = Σ_d c_d n'_d / (n_d + n'_d)  /  Σ_d c'_d n_d / (n_d + n'_d),

    and the propensities are products of these ratios. If every document was swapped half of the
    time, a ratio is that of clicks in the swap experiment of Joachims et al. (2017). Documents may
    also have moved for other reasons, such as two ranking functions in use, as in Agarwal et al.
    (2019).

    Parameters
    ----------
    clicks : ClickLog
        Some documents must have been shown at different positions for reasons that do not depend on
        the user.

    Returns
    -------
    array
        One number per position from 1 to the last one shown.

    Examples
    --------
    >>> from leanrank.data import make_clicks, make_ranking
    >>> documents = make_ranking(n_queries=50, docs_per_query=5, random_state=0)
    >>> clicks = make_clicks(documents, 200_000, eta=1.0, swaps="adjacent", random_state=0)
    >>> bool(np.allclose(estimate_propensities(clicks), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5], atol=0.02))
    True
    """
    last = int(clicks.position.max())
    row, place, shows, hits = _counts(clicks, last)
    lower = np.flatnonzero((row[1:] == row[:-1]) & (place[1:] == place[:-1] + 1)) + 1
    upper = lower - 1
    both = shows[lower] + shows[upper]
    below = np.bincount(place[lower] - 1, hits[lower] * shows[upper] / both, minlength=last)
    above = np.bincount(place[lower] - 1, hits[upper] * shows[lower] / both, minlength=last)
    silent = np.flatnonzero((below[1:] <= 0) | (above[1:] <= 0))
    if len(silent):
        k = int(silent[0]) + 2
        raise InputError(
            f"the propensity of position {k} cannot be estimated: too few documents were shown and "
            f"clicked both there and at position {k - 1}; swap neighbours in some sessions, leave "
            "out lower positions, or give known propensities: click_weights(clicks, propensities)"
        )
    return np.asarray(np.cumprod(np.append(1.0, below[1:] / above[1:])))


def _counts(clicks: ClickLog, last: int) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Count shows and clicks of each document at each position where it was shown."""
    from scipy.sparse import csr_array

    cells, shape = (clicks.row, clicks.position), (len(clicks.data), last + 1)
    shows, hits = (
        csr_array((values, cells), shape=shape)
        for values in (np.ones(len(clicks.row)), clicks.clicked.astype(np.float64))
    )
    row = np.repeat(np.arange(shape[0]), np.diff(shows.indptr))
    return row, shows.indices, shows.data, hits.data


SWAPS = ("none", "adjacent", "shuffle")


def make_clicks(
    data: RankingData,
    n_sessions: int,
    *,
    eta: float = 1.0,
    noise: float = 0.1,
    list_length: int = 10,
    scores: Any = None,
    swaps: str = "none",
    random_state: int | None = 0,
) -> ClickLog:
    """Return a click log drawn from the position-based model.

    Parameters
    ----------
    data : RankingData
        Judged documents. One with the highest label is always clicked if it is examined.
    n_sessions : int
        Number of sessions, each with one query, drawn uniformly.
    eta : float, default=1.0
        Position k is examined with propensity k^−eta.
    noise : float, default=0.1
        Probability that a document with the lowest label is clicked if it is examined; labels in
        between are interpolated.
    list_length : int, default=10
        Largest number of documents shown.
    scores : array-like, optional
        Scores that give the ranking shown, one per document in the order of ``data``; by default
        that order is shown.
    swaps : {"none", "adjacent", "shuffle"}, default="none"
        Change of each list before it is shown: none; one pair of neighbours is swapped in half of
        the lists; all documents are shuffled.
    random_state : int or None, default=0

    Returns
    -------
    ClickLog

    Examples
    --------
    >>> from leanrank.data import make_ranking
    >>> documents = make_ranking(n_queries=20, docs_per_query=5, random_state=0)
    >>> make_clicks(documents, n_sessions=100).n_lists
    100
    """
    check_choice("swaps", swaps, SWAPS)
    rng = np.random.default_rng(random_state)
    query_of = np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))
    ranked = np.arange(len(data))
    if scores is not None:
        ranked = np.lexsort((-np.asarray(scores, dtype=np.float64), query_of))
    query = rng.integers(data.n_queries, size=n_sessions)
    sizes = np.minimum(np.diff(data.query_ptr), list_length)[query]
    list_ptr = np.concatenate(([0], np.cumsum(sizes)))
    session = np.repeat(np.arange(n_sessions), sizes)
    place = np.arange(len(session)) - list_ptr[session]  # from 0
    source = place
    if swaps == "shuffle":
        source = np.lexsort((rng.random(len(place)), session)) - list_ptr[session]
    elif swaps == "adjacent":
        low = rng.integers(0, np.maximum(sizes - 1, 1))
        swapped = (rng.random(n_sessions) < 0.5) & (low + 1 < sizes)
        upper, swapped = low[session], swapped[session]
        down, up = swapped & (place == upper), swapped & (place == upper + 1)
        source = place + down - up
    row = ranked[data.query_ptr[query[session]] + source]
    low, high = float(data.y.min()), float(data.y.max())
    relevance = (data.y[row] - low) / max(high - low, 1e-300)
    attraction = noise + (1.0 - noise) * relevance
    clicked = rng.random(len(row)) < attraction * (place + 1.0) ** -eta
    if data.doc_ids is None:
        data = data.replace(doc_ids=np.arange(len(data)).astype(str))
    kept, row = only_shown(data, row)
    return ClickLog(kept, row, place + 1, clicked, list_ptr)
