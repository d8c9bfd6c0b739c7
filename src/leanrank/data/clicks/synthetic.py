"""Made-up clicks on a judged set, by users who see what stands high more often."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._typing import IntArray
from leanrank.data.clicks.click_log import ClickLog, only_shown
from leanrank.data.ranking_data import RankingData
from leanrank.errors import check_choice

SWAPS = ("none", "adjacent", "top", "shuffle")


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
    """Draw a click log in the position-based model.

    Parameters
    ----------
    data : RankingData
        Judged documents. One with the highest label is always clicked when it is looked at.
    n_sessions : int
        Each asks one query, drawn uniformly.
    eta : float, default=1.0
        Position k is looked at with propensity k^−eta.
    noise : float, default=0.1
        Probability that a document with the lowest label is clicked when it is looked at; labels
        between are interpolated.
    list_length : int, default=10
        Largest number of documents shown.
    scores : array-like, optional
        The ranking that is shown, one score per document in the order of ``data``; by default the
        order of ``data`` itself.
    swaps : {"none", "adjacent", "top", "shuffle"}, default="none"
        What is done to each list before it is shown: nothing; one pair of neighbours is swapped in
        half of the lists; one document changes places with the first in half of the lists; all
        documents are shuffled.
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
    shown, ptr = _rankings(data, scores, list_length)
    query = rng.integers(data.n_queries, size=n_sessions)
    sizes = np.diff(ptr)[query]
    list_ptr = np.concatenate(([0], np.cumsum(sizes)))
    session = np.repeat(np.arange(n_sessions), sizes)
    place = np.arange(len(session)) - list_ptr[session]  # from 0
    source = _moved(place, session, sizes, list_ptr, swaps, rng)
    row = shown[ptr[query[session]] + source]
    low, high = float(data.y.min()), float(data.y.max())
    relevance = (data.y[row] - low) / max(high - low, 1e-300)
    attraction = noise + (1.0 - noise) * relevance
    clicked = rng.random(len(row)) < attraction * (place + 1.0) ** -eta
    if data.doc_ids is None:
        data = data.replace(doc_ids=np.arange(len(data)).astype(str))
    some = np.logical_or.reduceat(clicked, list_ptr[:-1]) if n_sessions else np.empty(0, bool)
    kept, row = only_shown(data, row)
    return ClickLog(kept, row, place + 1, clicked, list_ptr, int((~some).sum()))


def _rankings(data: RankingData, scores: Any, list_length: int) -> tuple[IntArray, IntArray]:
    """Return the rows that each query shows, best first, and where each query's begin."""
    query_of = np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))
    if scores is None:
        ranked = np.arange(len(data))
    else:
        ranked = np.lexsort((-np.asarray(scores, dtype=np.float64), query_of))
    rank = np.arange(len(data)) - data.query_ptr[:-1][query_of]
    sizes = np.minimum(np.diff(data.query_ptr), list_length)
    return ranked[rank < list_length], np.concatenate(([0], np.cumsum(sizes)))


def _moved(
    place: IntArray,
    session: IntArray,
    sizes: IntArray,
    list_ptr: IntArray,
    swaps: str,
    rng: np.random.Generator,
) -> IntArray:
    """Return the place in the ranking of the document at each place of a list."""
    if swaps == "none":
        return place
    if swaps == "shuffle":
        order = np.lexsort((rng.random(len(place)), session))
        return order - list_ptr[session]
    low = np.zeros(len(sizes), dtype=np.int64)
    high = rng.integers(0, np.maximum(sizes - 1, 1)) + 1  # the lower of the two that change places
    if swaps == "adjacent":
        low = high - 1
    high = np.where((rng.random(len(sizes)) < 0.5) & (high < sizes), high, low)
    mine_low, mine_high = low[session], high[session]
    source = np.where(place == mine_low, mine_high, place)
    return np.where(place == mine_high, mine_low, source)
