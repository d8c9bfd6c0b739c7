"""The default ranker: a sum of a few curves that chooses everything by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from leanrank._numbers import check_whole
from leanrank._typing import BoolArray, Callback, FloatArray, Matrix
from leanrank.data.clicks.click_log import ClickLog
from leanrank.data.ranking_data import RankingData
from leanrank.designs.base import make_design
from leanrank.designs.ramp_columns import RampColumns, sample_step
from leanrank.designs.ramps import Curves, ramp_design
from leanrank.errors import InputError, warn
from leanrank.execution import make_executor
from leanrank.losses.base import Labels, Loss
from leanrank.model import Model
from leanrank.model.summary import with_summary
from leanrank.penalties.elastic_net import penalty_factors
from leanrank.problem.sharded import Shards
from leanrank.rankers import inputs, parameters
from leanrank.rankers.base import BaseRanker
from leanrank.rankers.dask import ClusterData
from leanrank.rankers.knots import directions, find_ramps, n_segments
from leanrank.rankers.lean_dask import ShardedSearch
from leanrank.rankers.lean_record import record_of
from leanrank.rankers.lean_search import Search
from leanrank.rankers.lean_structure import (
    MANY_DOCUMENTS,
    Settings,
    Size,
    Structure,
    checked_costs,
    divided,
    drawn,
    loss_of,
    terms_of,
)
from leanrank.rankers.parameters import FRACTION, Constraints, one_of
from leanrank.rankers.surfaces import query_columns
from leanrank.solvers.base import Solution

LINE_HEIGHT = 0.3
"""Standard deviation of a feature's line beside its ramps: a larger one makes lines cheaper."""

WIDE = 1_000
"""Number of features above which those of a sparse matrix have weights instead of curves."""

QUERIES_FOR_SEGMENTS, MORE_SEGMENTS = 400, 12
"""Informative queries from which curves have more than 8 segments, and how many; nested folds."""

JUMP_SEGMENTS = 32
"""Segments of curves that may jump, with enough documents; by nested folds."""

AUTO_PAIRS = 20

EMPHASIS = 0.5
"""A query counts by this power of its total gain; set on MQ2008 and the Yandex training part."""


@dataclass(eq=False, repr=False)
class LeanRanker(BaseRanker):
    """A small sum of curves, with strength, features and pairs chosen on held-out queries.

    Needs no scaling, no validation part and no grid: it divides the queries into folds, chooses how
    strongly to penalise by the loss on held-out queries, keeps surfaces of two features if they
    improve held-out rankings, drops the least important features down to ``max_features``,
    and further if the held-out loss falls clearly, and fits what it chose to all documents. The
    model is the optimum of a convex problem, certified by ``dual_gap_``. With more than 200,000
    documents, choices are made on a random sample of the queries with 100,000.

    Parameters
    ----------
    max_features : int, optional
        Largest number of features of the model. It has fewer if that lowers the held-out loss by
        more than two standard errors, but not on Dask.
    max_pairs : int or "auto", default="auto"
        Largest number of surfaces of two features; "auto" is 20. They are kept only if
        they put more pairs of documents of held-out queries in the right order, by more than the
        standard error.
    heredity : bool, default=True
        Whether a pair needs a curve of both of its features in the model. A column with one value
        per query has none, and is always tried beside the others: such a pair is a weight that
        depends on the query. Categories and monotone features are in no pair.
    curves : int, "auto", dict or None, default="auto"
        Number of segments of each feature's curve, as for ``LinearRanker``, and 12 from 400
        informative queries on; None gives weights.
    loss : str or Loss, default="softmax"
        Any loss of ``LinearRanker``; "softmax" takes ``gain``.
    gain : {"exp2", "linear"} or sequence, default="exp2"
        The gain of a label y: 2^y − 1, y itself, or the entry y of a sequence.
    categories : list of columns, optional
        Numeric columns whose values are names, not amounts. Columns of text are always categories.
    monotone : array-like, dict by feature or int, optional
        1 for features whose curve may not fall, −1 for those whose curve may not rise.
    penalty_factors : array-like or dict by feature, optional
        One factor per feature: 0 = always in, inf = never.
    costs : array-like or dict by feature, optional
        What each feature costs to compute; those that a dict does not name cost nothing.
    max_cost : float, optional
        Largest total cost of the features of the model.
    group_ratio : float or "auto", default="auto"
        Share of the norm of each curve in the penalty; the rest is ℓ1. "auto" is 0.5, or 0.05
        with up to 32 segments below 100,000 documents, so that curves may jump, if the held-out
        loss falls by more than its standard error.
    n_folds : int or "auto", default="auto"
        Folds of queries; "auto" is 5, or one held-out part of a fifth from 3,000 queries on, or
        from 1,000 on with 100,000 documents.
    n_strengths : int, default=14
        Strengths that are tried, down to ``min_strength``.
    min_strength : float, default=0.003
        Weakest strength, as a share of the one with an empty model.
    tol : float, default=1e-6
        Relative duality gap of the final model.
    n_jobs : int, default=-1
        Threads, -1 for all cores; the result does not depend on it.
    random_state : int, default=0
        Seed of the division into folds.
    verbose : int, default=0
        1 prints a line per choice.
    callback : callable, optional
        Called with a dict after every choice.

    Attributes
    ----------
    model_ : Model
        What was learned; scores rows as they were given to ``fit``.
    front_ : list of dict
        One row per size of model: features, pairs, held-out loss, NDCG@10 and MAP with standard
        errors. ``resized`` returns the ranker of another row.
    front_models_ : list of Model
        The models of these rows, fitted to the documents that made the choices.
    strength_ : float
        The chosen strength, as a share of the one with an empty model of these documents; if they
        are a sample, times the root of the share of documents that they are.
    dual_gap_, objective_ : float
        Certificate and value of the final problem, given its features and pairs.
    feature_importances_ : array of shape (n_features,)
        Standard deviation, within queries, of what each feature adds to the scores.
    n_features_ : int
        Features that the model reads.

    Examples
    --------
    >>> from leanrank import LeanRanker
    >>> from leanrank.data import load_sample
    >>> train, vali, test = load_sample()
    >>> ranker = LeanRanker(max_features=5).fit(train)
    >>> ranker.n_features_, round(ranker.score(test), 3)
    (5, 0.832)
    """

    max_features: int | None = None
    _: KW_ONLY
    max_pairs: int | str = "auto"
    heredity: bool = True
    curves: int | str | Mapping[Any, Any] | None = "auto"
    loss: str | Loss[Any] = "softmax"
    gain: str | Sequence[float] = "exp2"
    categories: Sequence[Any] | None = None
    monotone: Any = None
    penalty_factors: Any = None
    costs: Any = None
    max_cost: float | None = None
    group_ratio: float | str = "auto"
    n_folds: int | str = "auto"
    n_strengths: int = 14
    min_strength: float = 0.003
    tol: float = 1e-6
    n_jobs: int | None = -1
    random_state: Any = 0
    verbose: int = 0
    callback: Callback | None = None

    _fits_on_cluster = True
    _learned = "model_"
    _constraints: ClassVar[Constraints] = {"group_ratio": [FRACTION, one_of("auto")]}

    @property
    def _takes_nan(self) -> bool:
        return self.curves is not None

    def _data_and_labels(self, X: Any, *args: Any, **fields: Any) -> tuple[RankingData, Labels]:
        self._levels: dict[int, inputs.Groups] = {}
        self._left_out: list[str] = []
        self._clicked = isinstance(X, ClickLog)
        return super()._data_and_labels(X, *args, **fields)

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        loss = loss_of(self, EMPHASIS)
        if isinstance(data, ClusterData):
            self._learn_on_cluster(data, loss)
            return
        executor = make_executor(self.n_jobs)
        inputs.warn_of_labels(data, self._names())
        informative = np.asarray(loss.prepare(labels).scale > 0)
        kinds = self._kinds(data, informative, executor)
        settings = self._settings(data, kinds["curves"])
        whole = Search(data, labels, loss, kinds, settings, executor)
        seed = parameters.seed_of(self.random_state)
        chosen = drawn(data, informative, seed)
        search = whole if chosen is None else whole.of_queries(chosen)
        search.divide(divided(search.data, search.informative, self.n_folds, seed))
        if search.folds:
            self.strength_, sizes = search.run(partial(parameters.report, self))
        else:
            warn(
                "LeanRanker has fewer than two queries with documents of different labels, so "
                "nothing can be held out: the strength is 0.1 of the largest, not chosen"
            )
            self.strength_ = search.fit_whole(search.kinds["curves"], 0.1)
            sizes = search.sizes(self.strength_)
        size = sizes[search.best_size(sizes, self._keep_front(search, sizes))]
        if search is not whole:  # errors of weights shrink with the root of the documents
            counted = np.diff(data.query_ptr)[informative].sum()
            self.strength_ *= float(np.sqrt(len(search.data) / counted))
            own = next(kind for kind in kinds.values() if kind.ramps is size.structure.ramps)
            others = np.setdiff1d(np.arange(data.n_features), size.features)
            size = replace(size, structure=size.structure.on(own.design), dropped=others)
            whole.whole.top = search.top
        self._finish(whole, size)

    def _learn_on_cluster(self, data: ClusterData, loss: Loss[Any]) -> None:
        """Choose on one held-out part, without pairs and categories."""
        unused = ["max_pairs"] * (self.max_pairs != 0)
        unused += ["categories", "heredity", "n_folds", "random_state"]
        parameters.reject_unused(self, unused, "Dask")
        shards: Shards = data.X
        if self.curves is not None and not (self.curves == "auto" and data.n_features > WIDE):
            shards = shards.in_ramps(self._ramps)
        settings = self._settings(data, Structure(shards, shards.ramps))  # type: ignore[arg-type]
        search = ShardedSearch(shards, loss, settings)
        self.strength_, sizes = search.run(self.tol, partial(parameters.report, self))
        at = self._keep_front(search, sizes)
        self._certify(sizes[at].solution)
        self.model_ = self.front_models_[at]
        self.feature_importances_ = search.spreads(sizes[at].solution.w)

    def _keep_front(self, search: Search | ShardedSearch, sizes: Sequence[Size]) -> int:
        """Keep a model of every size; return the position of the largest one within the limits."""
        self.front_ = [size.row for size in sizes]
        self._gaps = [size.solution.gap for size in sizes]
        self.front_models_ = [self._model(search, size, size.solution) for size in sizes]
        n_features = self.n_features_in_
        prices = checked_costs(self._by_feature("costs", n_features, 0.0), n_features)
        for at, features in enumerate(size.features for size in sizes):
            small = self.max_features is None or len(features) <= self.max_features
            if small and (self.max_cost is None or prices[features].sum() <= self.max_cost):
                return at
        return len(sizes) - 1

    def _ramps(
        self,
        sample: Matrix,
        n_rows: int,
        levels: Mapping[int, inputs.Groups] | None = None,
        *,
        jumps: bool = False,
    ) -> RampColumns:
        curves = self.curves
        if curves == "auto" and jumps:
            curves = n_segments("auto", n_rows, JUMP_SEGMENTS)
        elif curves == "auto" and self.n_informative_queries_ >= QUERIES_FOR_SEGMENTS:
            curves = MORE_SEGMENTS
        ramps = find_ramps(curves, self._names(), sample, n_rows)
        return ramps.with_levels(dict(levels or {})).with_lines(sample, LINE_HEIGHT)

    def _validated(self, X: Any, y: Any, qid: Any, fields: Any, *, needs_y: bool) -> RankingData:
        """Leave out columns given as y or qid, and read columns of text as categories."""
        self._left_out = inputs.beside_features(X, y=y, qid=qid)
        X = inputs.without_columns(X, self._left_out)
        read = inputs.read_frame(X)
        if read is None:
            return super()._validated(X, y, qid, fields, needs_y=needs_y)
        matrix, names, self._levels = read
        inputs.check_finite(matrix, len(names), names, allow_nan=self._takes_nan)
        data = super()._validated(matrix, y, qid, fields, needs_y=needs_y)
        self.feature_names_in_ = np.array(names, dtype=object)
        return data

    def _kinds(
        self, data: RankingData, informative: BoolArray, executor: Any
    ) -> dict[str, Structure]:
        """Return the columns of each kind of model to try, "curves" first.

        Knots come from the documents of informative queries.
        """
        X = data.X
        wide = sparse.issparse(X) and X.shape[1] > WIDE and self.curves == "auto"
        levels = self._levels
        if self.curves is None or wide:
            if levels or self.categories:
                raise InputError("LeanRanker: categories need curves: leave curves out")
            inputs.check_finite(X, data.n_features, self._names())
            return {"curves": Structure(make_design(X, executor, data.query_ptr), None)}
        if self.categories is not None:
            names, n_features = self._names(), data.n_features
            at = [
                parameters.feature_number(f, n_features, names, "categories")
                for f in self.categories
            ]
            X, levels = inputs.coded_columns(X, at, levels)
        rows = np.flatnonzero(np.repeat(informative, np.diff(data.query_ptr)))
        sample = X[rows[:: sample_step(len(rows))]]

        def structure(jumps: bool = False) -> Structure:
            ramps = self._ramps(sample, len(rows), levels, jumps=jumps)
            design = ramp_design(X, ramps, executor)
            return Structure(design, design.ramps, jumps=jumps)

        kinds = {"curves": structure()}
        if kinds["curves"].ramps.is_bend.any():  # type: ignore[union-attr]
            if self.group_ratio == "auto":
                few_documents = X.shape[0] < MANY_DOCUMENTS
                kinds["jumps"] = (
                    structure(jumps=True) if few_documents else replace(kinds["curves"], jumps=True)
                )
            kinds["lines"] = replace(kinds["curves"], straight=True)
        return kinds

    def _settings(self, data: RankingData, structure: Structure) -> Settings:
        n_features = data.n_features
        pairs = AUTO_PAIRS if self.max_pairs == "auto" else int(self.max_pairs)
        design: Any = structure.design
        if pairs and not isinstance(design, Curves):
            parameters.reject_unused(self, ("max_pairs", "heredity"), "weights instead of curves")
            pairs = 0
        factors = self._by_feature("penalty_factors", n_features, 1.0)
        factors = None if factors is None else penalty_factors(factors, n_features)
        if self.max_cost is not None:  # a feature that costs more by itself may never enter
            factors = np.ones(n_features) if factors is None else factors
            costs = checked_costs(self._by_feature("costs", n_features, 0.0), n_features)
            factors = np.where(costs > self.max_cost, np.inf, factors)
            if np.isinf(factors).all():
                raise InputError(f"every feature costs more than max_cost={self.max_cost:g}")
        return Settings(
            group_ratio=0.5 if self.group_ratio == "auto" else float(self.group_ratio),
            factors=factors,
            signs=directions(self, n_features, self._names()),
            strengths=np.logspace(0, np.log10(self.min_strength), self.n_strengths),
            max_pairs=pairs,
            tol=max(1e-4, self.tol),
            heredity=self.heredity,
            of_query=pairs > 0 and query_columns(design, data.query_ptr, self._names()),
        )

    def _finish(self, search: Search, size: Size) -> None:
        """Solve the chosen problem to ``tol``, and keep its model."""
        whole = search.whole
        penalty = search.settings.penalty(size.structure, size.dropped)
        problem = whole.problem(size.structure)
        solution = whole.solve(problem, penalty, self.strength_, size.solution.w, tol=self.tol)
        self.feature_importances_ = search.by_feature(size.structure, solution.w)
        self._certify(solution)
        self.model_ = with_summary(self._model(search, size, solution), search.data)

    def _certify(self, solution: Solution) -> None:
        self.dual_gap_, self.objective_ = solution.gap, solution.objective
        self.n_iter_ = solution.n_iter
        if not solution.converged:
            warn(
                f"LeanRanker stopped at a relative duality gap of {solution.gap:.2g}, above "
                f"tol={self.tol:g}: raise tol, or take fewer segments",
                ConvergenceWarning,
            )

    def _warn_if_empty(self, data: RankingData, labels: Labels) -> None:
        if self.model_.n_nonzero == 0:
            warn(
                "LeanRanker learned a model without features, so every score is 0: no feature "
                "lowers the loss on held-out queries"
            )

    def _model(self, search: Search | ShardedSearch, size: Size, solution: Solution) -> Model:
        """Return the model with its training record and the held-out results of its size."""
        structure, w, made = size.structure, solution.w, self._provenance()
        alpha = self.strength_ * search.top
        record = record_of(structure, w, alpha, EMPHASIS, search.settings)
        made["training"] = made.get("training", {}) | record | {
            "dual_gap": solution.gap, "objective": solution.objective, "n_iter": solution.n_iter,
            "held_out": size.row,
        }  # fmt: skip
        if self._clicked:  # held-out queries are measured by clicks
            made["training"]["clicks"] = True
        curves, surfaces = terms_of(structure, w, search.settings.of_query)
        more: dict[str, Any] = {"feature_names": self._names(), "provenance": made}
        return Model(structure.n_features, curves, surfaces=surfaces, **more)

    @property
    def n_features_(self) -> int:
        """How many features the model reads."""
        check_is_fitted(self, "model_")
        return int(self.model_.n_nonzero)

    def _checked_features(self, X: Any, *, reset: bool = False) -> Matrix:
        if self._levels and not reset:
            return X  # the model reads the names of its categories
        return super()._checked_features(inputs.without_columns(X, self._left_out), reset=reset)

    def _scores(self, X: Matrix) -> FloatArray:
        return self.model_.predict(X)

    def to_model(self, *, provenance: Mapping[str, Any] | None = None) -> Model:
        """Return the model, which can be saved, sent and exported."""
        check_is_fitted(self, "model_")
        if provenance is None:
            return self.model_
        return self.model_.replace(provenance={**(self.model_.provenance or {}), **provenance})

    def refit(self, X: Any, y: Any = None, qid: Any = None, *, structure: str = "same") -> Self:
        """Learn again from new documents, given as for ``fit``.

        Terms, knots and strength stay, and the fit starts from the present weights. With
        ``structure="again"`` everything is chosen again, as ``fit`` does.
        """
        if structure == "again":
            return self.fit(X, y, qid)
        check_is_fitted(self, "model_")
        # by name: the layer of models in use imports rankers, not the other way round
        refit = import_module("leanrank.service.refit").refit
        how = {"loss": None if isinstance(self.loss, str) else self.loss, "n_jobs": self.n_jobs}
        self.model_ = refit(self.model_, X, y, qid, structure=structure, tol=self.tol, **how)
        training = self.model_.provenance["training"]
        self.dual_gap_, self.objective_ = training["dual_gap"], training["objective"]
        self.n_iter_ = training["n_iter"]
        return self

    def resized(self, max_features: int) -> Self:
        """Return the ranker with the largest model of the front of at most ``max_features``.

        Its weights are those of the search, certified to 1e-4.
        """
        check_is_fitted(self, "model_")
        check_whole("max_features", max_features)
        at = next(k for k, row in enumerate(self.front_) if row["features"] <= max_features)
        other = copy(self)
        other.max_features = max_features
        other.model_, other.dual_gap_ = self.front_models_[at], self._gaps[at]
        return other
