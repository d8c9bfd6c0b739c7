"""Rankers that learn in passes: seeds, early stopping, streams; and MinBatSRank."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from leanrank._numbers import check_whole
from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.execution import single_threaded_blas
from leanrank.losses import get_loss
from leanrank.losses.base import Edges, Labels
from leanrank.rankers import parameters
from leanrank.rankers.inputs import count_informative
from leanrank.rankers.parameters import POSITIVE, BestSoFar, Constraints, Rounds, Uses, one_of
from leanrank.rankers.path import BaseLinearRanker
from leanrank.solvers.sampling import ftrl
from leanrank.solvers.sampling.pair_sampling import document_keys

_ANY_TIME = frozenset(
    {
        *("epochs", "n_steps", "shuffle", "random_state", "measure", "convention", "patience"),
        *("warm_start", "n_jobs", "verbose", "callback"),
    }
)
"""Parameters that may change during a run; the others are part of the state."""


@dataclass(eq=False, repr=False)
class StochasticRanker(Rounds, BaseLinearRanker):
    """A ranker that takes a step per query or per few pairs, in passes over the data.

    A subclass defines how to prepare a block of whole queries (``_block``), the state before the
    first step (``_begin``) and a pass over queries in a given order (``_pass``).

    ``fit`` shuffles the queries before each pass by ``random_state``, starting from an order that
    depends on their content: the same data in another order give the same model. ``partial_fit``
    is one pass over the given queries in the given order.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        With validation data, the weights of the best pass; models without a feature are never the
        best.
    state_ : object
        The state of the run, from which it can continue.
    history_ : list of dict
        One entry per pass: the mean loss before each step, documents and features so far and, with
        validation data, the measure.
    n_iter_ : int
        Number of passes.
    best_epoch_ : int
        Only with validation data: the pass whose weights are ``coef_``.
    """

    _state_type: ClassVar[type]
    """The class of ``state_``, to read a checkpoint."""

    _: KW_ONLY
    epochs: int = 1
    random_state: Any = 0
    warm_start: bool = False

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        best, block, epochs = BestSoFar(self, held_out), self._block(data, labels), self.epochs
        go_on = self.warm_start and getattr(self, "state_", None) is not None
        if go_on and len(self.state_.weights()) == data.n_features:
            self._check_same_parameters()
        else:
            self._start(block, data.n_features, epochs)
        shuffle = getattr(self, "shuffle", False)
        active = content_order(data, block.active, labels.edges) if shuffle else block.active
        self.history_, start = [], time.perf_counter()
        for self.n_iter_ in range(1, epochs + 1):
            order = active
            if shuffle:
                key = [int(self.state_.seed), int(self.state_.epoch)]
                order = active[np.random.default_rng(key).permutation(len(active))]
            w = self._pass_and_report(block, order, start, best)
            if held_out is not None:
                value = self.history_[-1][self.measure]
                if best.update(self.n_iter_, value, w if w.any() else None):
                    break
        self.coef_ = self.state_.weights() if best.model is None else best.model
        if best.at:
            self.best_epoch_ = best.at

    def _block(self, data: RankingData, labels: Labels) -> Any:
        """Prepare whole queries for passes over them, once per fit or partial_fit."""
        raise AssertionError(f"{type(self).__name__} must define _block")

    def _begin(self, block: Any, n_features: int, seed: int, n_passes: int) -> Any:
        """Return the state of a run before its first step; ``block`` is the first one."""
        raise AssertionError(f"{type(self).__name__} must define _begin")

    def _pass(self, state: Any, block: Any, order: IntArray) -> float:
        """Learn from the queries in ``order``; return the mean of their losses before each step."""
        raise AssertionError(f"{type(self).__name__} must define _pass")

    def fit_stream(self, source: Any, **options: Any) -> Self:
        """Learn from more data than fits in memory.

        Arguments as for ``leanrank.rankers.streaming.fit_stream``: a source of text, Parquet or
        chunks, and options for checkpoints, passes, validation and progress.
        """
        from leanrank.rankers.streaming import fit_stream

        fit_stream(self, source, **options)
        return self

    def partial_fit(self, X: Any, y: Any = None, qid: Any = None, **options: Any) -> Self:
        """Learn from whole queries, once each in the given order, continuing from ``state_``.

        Arguments as for ``fit``, without validation data. Queries with a single level are counted
        and skipped. For more features than before, call ``grow`` first.
        """
        first = not hasattr(self, "state_")
        if not first:
            self._check_same_parameters()
            self._checked_features(X)
        data, labels = self._data_and_labels(X, y, qid, first=first, **options)
        informative = count_informative(data, labels)
        self.n_queries_ = getattr(self, "n_queries_", 0) + data.n_queries
        self.n_informative_queries_ = getattr(self, "n_informative_queries_", 0) + informative
        if first:
            self.n_iter_, self.history_ = 0, []
        if informative == 0:
            if first:
                self.coef_ = np.zeros(data.n_features)
            return self
        with single_threaded_blas():
            block = self._block(data, labels)
            if first:
                self._start(block, data.n_features, 1)
            self.coef_ = self._pass_and_report(block, block.active, time.perf_counter())
        self._check_learned()
        return self

    def grow(self, n_features: int) -> Self:
        """Add features, up to ``n_features``; their weights start at zero."""
        present = getattr(self, "n_features_in_", 0)
        if check_whole("n_features", n_features) < present:
            name = type(self).__name__
            raise InputError(f"{name} has {present} features and cannot continue with {n_features}")
        if hasattr(self, "state_"):
            self.state_.grow(n_features)
            self.coef_ = self.state_.weights()
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # new features have no names
        self.n_features_in_ = n_features
        return self

    def _start(self, block: Any, n_features: int, n_passes: int) -> None:
        seed = parameters.seed_of(getattr(self, "random_state", 0))
        self.state_ = self._begin(block, n_features, seed, n_passes)
        self._begun_with = self._parameters_of_state()

    def _parameters_of_state(self) -> dict[str, Any]:
        return {k: v for k, v in self.get_params().items() if k not in _ANY_TIME}

    def _check_same_parameters(self) -> None:
        """Reject parameters that differ from those with which the state began."""
        now = self._parameters_of_state()
        for name, value in getattr(self, "_begun_with", {}).items():
            if repr(value) != repr(now[name]):
                raise InputError(
                    f"the run was started with {name}={value!r} and cannot continue with "
                    f"{name}={now[name]!r}: set it back, or fit again without warm_start"
                )

    def _pass_and_report(
        self, block: Any, order: IntArray, start: float, best: BestSoFar | None = None
    ) -> FloatArray:
        """Make one pass, record it, and return the weights; forget the best pass of before."""
        self.__dict__.pop("best_epoch_", None)
        before, began = self.state_.documents, time.perf_counter()
        loss = self._pass(self.state_, block, order)
        seconds = time.perf_counter() - began
        self.state_.epoch += 1
        w: FloatArray = self.state_.weights()
        entry: dict[str, Any] = {
            "epoch": self.state_.epoch,
            "documents": self.state_.documents,
            "loss": loss,
            "support": int(np.count_nonzero(w)),
            "sparsity": float(np.count_nonzero(w)) / max(1, len(w)),
        }
        if best is not None and best.held_out is not None:
            used = np.flatnonzero(w)
            entry[self.measure] = best.measured(np.asarray(best.held_out.X[:, used] @ w[used]))
        entry["documents_per_second"] = (self.state_.documents - before) / max(seconds, 1e-9)
        entry["seconds"] = time.perf_counter() - start
        parameters.record(self, entry)
        return w


def content_order(data: RankingData, queries: IntArray, edges: Edges | None = None) -> IntArray:
    """Return queries sorted by their content, independent of row order and identifiers.

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
    else:
        mass = np.maximum(np.bincount(query_of, weight, minlength=n_queries), 1e-300)
        mean = np.bincount(query_of, weight * data.y, minlength=n_queries) / mass
        key = np.bincount(query_of, weight * (data.y - mean[query_of]) * along, minlength=n_queries)
    return queries[np.argsort(key[queries], kind="stable")]


@dataclass(eq=False, repr=False)
class MinBatSRank(StochasticRanker):
    """Mini-batch stochastic sparse ranking (Cheng et al. 2018): FTRL over batches of one query.

    Each step moves the weights by the gradient of one query; a soft threshold on the accumulated
    gradients keeps most weights exactly zero. A step takes time linear in the query's non-zeros.

    Parameters
    ----------
    alpha : float, default=0.1
        Strength of the ℓ1 penalty, as a share of ``alpha_max`` unless ``relative`` is False.
    eta0 : float, default=1.0
        γ of the learning rates γ/√(ρ + Σ g²), Σ g² being the squared gradients of a feature so far.
    rho : float, default=1.0
        ρ of the learning rates; a larger one makes the first steps smaller. For "feature" rates.
    loss : str, default="squared-hinge"
        "squared-hinge" as published, or another loss such as "hinge", "logistic", "domination" or
        "listnet"; the last two are listwise.
    rates : {"feature", "uniform"}, default="feature"
        One learning rate per feature, or γ/√t for all in step t (the paper's Nonfea).
    l1 : {"total", "per_step"}, default="total"
        Whether alpha applies to the whole run, as published, or to each step. Only "per_step"
        converges to the optimum of mean loss + alpha·‖w‖₁; with "total", longer runs are less
        sparse.
    relative : bool, default=True
        Whether alpha is a share of ``alpha_max``. A stream computes ``alpha_max`` on its first
        block, so give an absolute alpha there.
    epochs : int, default=10
        Passes over the queries.
    normalize : {"query", "none"}, default="query"
        Whether a query's loss is divided by its number of terms or, as published, by nothing.
    shuffle : bool, default=True
        Whether each pass has a new order of the queries.
    random_state : int, RandomState or None, default=0
        Seed of these orders. The same seed gives the same model, whatever the order of the rows.
    measure, convention : str, default="ndcg@10", "standard"
        Measure that selects the best pass on validation data.
    patience : int, optional
        Passes without improvement after which to stop; needs validation data.
    warm_start : bool, default=False
        Continue from the state of the last fit, with the same parameters of the steps.
    verbose : int, default=0
        1 prints a line of progress per step.
    callback : callable, optional
        Called with each entry of the history.

    Attributes
    ----------
    alpha_ : float
        The absolute strength.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import MinBatSRank
    >>> data = make_ranking(n_queries=60, n_features=30, n_informative=4, random_state=0)
    >>> ranker = MinBatSRank(alpha=0.2).fit(data.X, data.y, qid=data.qid)
    >>> bool(0 < (ranker.coef_ != 0).sum() < 15)
    True
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.7)
    True
    """

    _state_type: ClassVar[type] = ftrl.FTRLState
    _takes_preferences: ClassVar[bool] = True  # the loss may reject them

    alpha: float = 0.1
    _: KW_ONLY
    eta0: float = 1.0
    rho: float = 1.0
    loss: str = "squared-hinge"
    rates: str = "feature"
    l1: str = "total"
    relative: bool = True
    epochs: int = 10
    normalize: str = "query"
    shuffle: bool = True

    _constraints: ClassVar[Constraints] = {
        "eta0": [POSITIVE],
        "normalize": [one_of("query", "none")],
    }
    _used_with: ClassVar[Uses] = {"rho": ("rates", ("feature",))}

    def alpha_max(self, X: Any, y: Any = None, qid: Any = None, **options: Any) -> float:
        """Return the alpha at which hardly any feature enters; takes what ``fit`` takes.

        It is the largest sum of a feature's gradients at zero weights: over all steps of the run,
        or with ``l1="per_step"`` their mean, which is the alpha_max of the batch problem.
        """
        data, labels = clone(self)._data_and_labels(X, y, qid, **options)
        block = self._block(data, labels)
        return self._scale(block, self.epochs)

    def _block(self, data: RankingData, labels: Labels) -> ftrl.QueryBatches:
        return ftrl.make_batches(data.X, labels, get_loss(self.loss))

    def _begin(
        self, block: ftrl.QueryBatches, n_features: int, seed: int, n_passes: int
    ) -> ftrl.FTRLState:
        alpha, uniform, per_step = float(self.alpha), self.rates == "uniform", self.l1 == "per_step"
        self.alpha_ = alpha * self._scale(block, n_passes) if self.relative else alpha
        rule = ftrl.FTRLRule(self.alpha_, float(self.eta0), float(self.rho), uniform, per_step)
        return ftrl.FTRLState.start(rule, n_features, seed)

    def _pass(self, state: ftrl.FTRLState, block: ftrl.QueryBatches, order: IntArray) -> float:
        return ftrl.ftrl_pass(state, block, order)

    def _scale(self, block: ftrl.QueryBatches, n_passes: int) -> float:
        gradient = block.gradient_at_zero()
        steps = 1.0 / max(1, len(block.active)) if self.l1 == "per_step" else n_passes
        return float(np.abs(gradient).max(initial=0.0)) * steps
