"""The base of rankers that learn in passes: seeds, early stopping, the order of queries."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import Callback, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.losses.base import Edges, Labels
from leanrank.rankers.linear import BaseLinearRanker
from leanrank.rankers.progress import start_watching
from leanrank.solvers.sampling.pair_sampling import document_keys


@dataclass(eq=False, repr=False)
class StochasticRanker(BaseLinearRanker):
    """A ranker that takes a step per query (or a few pairs), for some passes over the data.

    ``fit`` shuffles the queries before each pass by ``random_state``, starting from an order that
    depends on their content: the same data in another order give the same model. ``partial_fit``
    is one pass over the given queries in the given order.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        With validation data, the weights of the best pass; models without a feature are never the
        best.
    state_ : object
        The state of the run, picklable.
    history_ : list of dict
        One entry per pass: the mean loss before each step; documents and features so far; with
        validation data, their measure.
    n_iter_ : int
        Passes.
    best_epoch_ : int
        Only with validation data: the pass whose weights are ``coef_``.
    """

    takes_validation: ClassVar[bool] = True

    _: KW_ONLY
    epochs: int = 1
    random_state: Any = 0
    measure: str = "ndcg@10"
    convention: str = "standard"
    patience: int | None = None
    warm_start: bool = False
    verbose: int = 0
    callback: Callback | None = None

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        best = start_watching(self, validated=held_out is not None)
        epochs = self.epochs
        block = self._block(data, labels)
        go_on = self.warm_start and getattr(self, "state_", None) is not None
        if go_on and len(self.state_.weights()) == data.n_features:
            self._check_same_parameters()
        else:
            self._start(block, data.n_features, epochs)
        active = block.active
        if getattr(self, "shuffle", False):
            active = content_order(data, active, labels.edges)
        self.history_ = []
        start = time.perf_counter()
        for self.n_iter_ in range(1, epochs + 1):
            order = active
            if getattr(self, "shuffle", False):
                key = [int(self.state_.seed), int(self.state_.epoch)]
                order = active[np.random.default_rng(key).permutation(len(active))]
            w = self._pass_and_report(block, order, start, held_out)
            if held_out is not None:
                value = self.history_[-1][self.measure]
                if best.update(self.n_iter_, value, w if w.any() else None):
                    break
        self.coef_ = self.state_.weights() if best.model is None else best.model
        if best.at:
            self.best_epoch_ = best.at
        elif hasattr(self, "best_epoch_"):
            del self.best_epoch_  # of an earlier fit


def content_order(data: RankingData, queries: IntArray, edges: Edges | None = None) -> IntArray:
    """Sort queries by their content, whatever the order of the rows and the identifiers.

    The key of a query is the covariance of its labels (or preferences) with a random projection of
    its features. Constants within a query and documents of weight zero do not change it.

    >>> data = RankingData([[1.0], [0.0], [3.0], [0.0]], [1, 0, 1, 0], qid=["b", "b", "a", "a"])
    >>> data.query_ids[content_order(data, np.arange(2))].tolist()
    ['a', 'b']
    """
    along = document_keys(data.X)
    n_queries = data.n_queries
    query_of = np.repeat(np.arange(n_queries), np.diff(data.query_ptr))
    weight = np.ones(len(data)) if data.sample_weight is None else data.sample_weight
    if edges is not None:
        away = edges.weight * (along[edges.winner] - along[edges.loser])
        key = np.bincount(query_of[edges.winner], away, minlength=n_queries)
        return queries[np.argsort(key[queries], kind="stable")]
    mass = np.maximum(np.bincount(query_of, weight, minlength=n_queries), 1e-300)
    mean = np.bincount(query_of, weight * data.y, minlength=n_queries) / mass
    key = np.bincount(query_of, weight * (data.y - mean[query_of]) * along, minlength=n_queries)
    return queries[np.argsort(key[queries], kind="stable")]
