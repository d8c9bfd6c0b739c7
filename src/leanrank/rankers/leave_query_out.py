"""RankRLS with exact leave-query-out selection of features, one by one, or of the strength."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import BoolArray, FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, warn
from leanrank.execution import make_executor
from leanrank.losses.base import Labels
from leanrank.metrics.judge import Judge, as_good_as, best_of, better_sign, mean_of
from leanrank.rankers.inputs import held_out_data
from leanrank.rankers.parameters import POSITIVE, Constraints, Uses, report, seed_of
from leanrank.rankers.path import BaseLinearRanker, descending, measure_models
from leanrank.rankers.rankrls import centred_on_queries
from leanrank.solvers.least_squares.centred import Centred
from leanrank.solvers.least_squares.greedy import forward, make_state, nested_weights
from leanrank.solvers.least_squares.spectrum import factorise, leave_query_out_scores

MOST_SELECTED = 50
"""Default of ``max_features``."""


@dataclass(eq=False, repr=False)
class GreedyRankRLS(SelectorMixin, BaseLinearRanker):
    """RankRLS on few features, added one by one (Pahikkala et al. 2010).

    Each step adds the feature that gives RankRLS the smallest leave-query-out error. The error is
    exact, and all steps together take time linear in documents, features and steps. One fit gives
    the models of all sizes. With a single query, which cannot be left out, features are chosen by
    the training error, with a warning.

    Parameters
    ----------
    n_features_to_select : int or "auto", default="auto"
        Number of features. "auto" adds up to ``max_features`` features; ``select_by`` and ``rule``
        choose the number of features of the model.
    alpha : float, default=1e-3
        Strength of the ℓ2² penalty, above 0. With ``normalize="none"`` it is the paper's λ.
    normalize : {"query", "term", "none"}, default="query"
        As for RankRLS.
    max_features : int, optional
        For "auto": largest number of features; 50 by default.
    select_by : str, default="criterion"
        For "auto": "criterion", or a measure such as "map" or "ndcg@10" of the leave-query-out
        scores of each size.
    rule : {"best", "1se"}, default="best"
        For "auto": the best size, or the smallest within one standard error of it.
    memory : {"standard", "low"}, default="standard"
        "standard" stores two residuals per feature: O(kmn) time, O(mn) memory for k of n features
        and m documents. "low" recomputes them: O(k²mn) time, O(km + nnz) memory.
    fitting : {"pre", "back"}, default="pre"
        "pre" refits the weights of the chosen features when it measures a candidate. "back", for
        sparse data, measures a candidate with these weights fixed at the values fitted without the
        left-out query: O(k²·m̄·n) time with m̄ non-zeros per feature, memory as for "low". The
        weights are refitted after each choice.
    candidates : int, optional
        Number of features to try per step, drawn at random, by default all; fewer save time with
        "low" or "back".
    random_state : int, RandomState or None, default=0
        Seed of the draws of ``candidates``.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int, default=0
        1 prints a line of progress per step.

    Attributes
    ----------
    selected_ : array of int64
        The features, from 0, in order of choice.
    coef_ : array of shape (n_features,)
    n_features_to_select_ : int
        Number of features in the model.
    subsets_ : list of array
        The features of each size, in order of choice.
    coef_path_ : array of shape (sizes, n_features)
        The weights of each size; row k − 1 has k features.
    criterion_path_ : array
        The leave-query-out squared error of each size.
    select_path_ : array of shape (sizes, queries)
        ``select_by`` on each left-out query, higher is better; NaN where undefined.

    Notes
    -----
    The leave-query-out error of a size is exact for its subset of features, but the subset was
    chosen with all queries: as an estimate of the error on new queries it is optimistic.
    Validation data has no such bias: see ``measure_path``.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import GreedyRankRLS
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = GreedyRankRLS(4, alpha=0.01).fit(data.X, data.y, qid=data.qid)
    >>> len(ranker.selected_), int((ranker.coef_ != 0).sum())
    (4, 4)
    >>> ranker.transform(data.X).shape == (len(data), 4)
    True
    """

    __metadata_request__transform: ClassVar[dict[str, bool]] = {}

    n_features_to_select: int | str = "auto"
    alpha: float = 1e-3
    _: KW_ONLY
    normalize: str = "query"
    max_features: int | None = None
    select_by: str = "criterion"
    rule: str = "best"
    memory: str = "standard"
    fitting: str = "pre"
    candidates: int | None = None
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: int = 0

    _constraints: ClassVar[Constraints] = {"alpha": [POSITIVE]}
    _used_with: ClassVar[Uses] = {
        "memory": ("fitting", ("pre",)),
        **dict.fromkeys(("max_features", "select_by", "rule"), ("n_features_to_select", ("auto",))),
    }

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        alpha = float(self.alpha)
        n_steps = self._count_steps(data.n_features)
        executor = make_executor(self.n_jobs)
        centred = centred_on_queries(data, labels)
        warn_of_single_query(centred, "features are chosen by the training error")
        by_training = centred.only_query >= 0
        kind = "frozen" if self.fitting == "back" else self.memory
        state = make_state(kind, centred, alpha, executor, by_training=by_training)
        drawn = np.random.default_rng(seed_of(self.random_state))
        errors, by_query = [], []
        for residual in forward(state, n_steps, n_candidates=self.candidates, random=drawn):
            errors.append(float(residual @ residual))
            by_query.append(self._on_left_out(residual, centred, data))
            size, last = len(state.chosen), state.chosen[-1]
            report(self, {"features": size, "last": last, "criterion": errors[-1]})
        chosen = np.array(state.chosen, dtype=np.int64)
        self._weights = nested_weights(centred, chosen, alpha)
        self.subsets_ = [chosen[: size + 1] for size in range(n_steps)]
        self.criterion_path_, self.select_path_ = np.array(errors), np.array(by_query)
        if self.n_features_to_select == "auto":
            kept = choose_size(self.select_path_, self.rule, self.select_by) + 1
        else:
            kept = n_steps
        self._keep_size(kept)

    def _keep_size(self, size: int) -> None:
        self.n_features_to_select_ = size
        self.selected_ = self.subsets_[size - 1]
        self.coef_ = self._of_size(size)

    def _of_size(self, size: int) -> FloatArray:
        coef = np.zeros(self.n_features_in_)
        coef[self.subsets_[size - 1]] = self._weights[size - 1]
        return coef

    @property
    def coef_path_(self) -> FloatArray:
        """The weights of each size, one per row."""
        check_is_fitted(self, "subsets_")
        return np.array([self._of_size(size) for size in range(1, len(self.subsets_) + 1)])

    def resize(self, size: int) -> GreedyRankRLS:
        """Switch to another size of the path: set ``coef_`` and ``selected_`` without a new fit."""
        check_is_fitted(self, "subsets_")
        if isinstance(size, bool) or size not in range(1, len(self.subsets_) + 1):
            raise InputError(f"size={size!r}: sizes from 1 to {len(self.subsets_)} were fitted")
        self._keep_size(int(size))
        return self

    def measure_path(
        self, X: Any, y: Any = None, qid: Any = None, *, measure: str = "ndcg@10",
        convention: str = "standard",
    ) -> FloatArray:  # fmt: skip
        """Return the mean of a measure on validation data for every size.

        ``resize(1 + measure_path(…).argmax())`` switches to the best one.
        """
        check_is_fitted(self, "subsets_")
        data = held_out_data(self, X if isinstance(X, RankingData) else (X, y, qid))
        return measure_models(self.coef_path_, data, [measure], convention)[measure]

    def _on_left_out(self, residual: FloatArray, centred: Centred, data: RankingData) -> FloatArray:
        """Return ``select_by`` of a leave-query-out residual on each query; higher is better."""
        if self.select_by == "criterion":
            return -squared_by_query(residual, centred)
        fitted = centred.target - residual
        scores = np.divide(fitted, centred.root, out=np.zeros_like(fitted), where=centred.root > 0)
        return measure_scores(scores[None], centred, data, self.select_by, "standard")[0]

    def _count_steps(self, n_features: int) -> int:
        wanted = self.n_features_to_select
        if wanted == "auto":
            return min(n_features, int(self.max_features or MOST_SELECTED))
        if int(wanted) > n_features:
            raise InputError(
                f"n_features_to_select={wanted} is more than the {n_features} features"
            )
        return int(wanted)

    def transform(self, X: Any) -> Any:
        """Return the selected columns of X, which may be a RankingData, in their order in X."""
        if isinstance(X, RankingData):
            self._checked_features(X)
            chosen = self.get_support(indices=True)
            names = X.feature_names
            named = None if names is None else [names[i] for i in chosen]
            return X.replace(X=X.X[:, chosen], feature_names=named)
        return super().transform(X)

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self, "selected_")
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.selected_] = True
        return mask


@dataclass(eq=False, repr=False)
class RankRLSCV(BaseLinearRanker):
    """RankRLS with the alpha that has the best measure in leave-query-out cross-validation.

    The leave-query-out scores are exact and take little more time than one fit: one factorisation
    serves every alpha and every query.

    Parameters
    ----------
    alphas : iterable of float, default=1e-6 … 1e2 by factors of ten
        Positive strengths to choose from.
    measure : str, default="ndcg@10"
        Any measure of ``leanrank.metrics.evaluate``, or "loss" for the squared loss itself.
    convention : str, default="standard"
        Convention of the measure.
    rule : {"best", "1se"}, default="best"
        The best alpha, or the largest one whose measure is within one standard error of the best.
    normalize : {"query", "term", "none"}, default="query"
        As for RankRLS.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    alpha_ : float
        The chosen strength; among equals the largest.
    alphas_ : array
        The strengths, ascending.
    measures_ : array of shape (n_alphas,)
        The mean measure of the leave-query-out scores of each alpha.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import RankRLSCV
    >>> data = make_ranking(n_queries=30, random_state=0)
    >>> ranker = RankRLSCV(alphas=[1e-4, 1e-2, 1.0, 100.0]).fit(data.X, data.y, qid=data.qid)
    >>> ranker.alpha_ < 100
    True
    """

    alphas: Iterable[float] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
    _: KW_ONLY
    measure: str = "ndcg@10"
    convention: str = "standard"
    rule: str = "best"
    normalize: str = "query"
    n_jobs: int | None = None

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        grid = descending(self.alphas)[::-1]
        if grid[0] <= 0:
            raise InputError("alphas must be above 0: leave 0 out")
        centred = centred_on_queries(data, labels)
        warn_of_single_query(centred, "the largest alpha is taken")
        spectrum = factorise(centred)
        scores = leave_query_out_scores(spectrum, grid, make_executor(self.n_jobs))
        values = measure_scores(scores, centred, data, self.measure, self.convention)
        # from the simplest model to the most flexible
        chosen = len(grid) - 1 - choose_size(values[::-1], self.rule, self.measure)
        self.alphas_ = grid
        self.alpha_ = float(grid[chosen])
        with np.errstate(invalid="ignore"):
            means = np.nanmean(values, axis=1)
        self.measures_ = -means if self.measure == "loss" else means
        self.coef_ = spectrum.weights(self.alpha_)


def measure_scores(
    scores: FloatArray, centred: Centred, data: RankingData, measure: str, convention: str
) -> FloatArray:
    """Return a measure of the left-out scores of several models on each query.

    Parameters
    ----------
    scores : array of shape (models, documents)
    centred : Centred
        A document of weight 0 is left out of the measure, one of weight 2 is listed twice; if any
        weight is not a whole number, all positive weights count as 1.
    data : RankingData
    measure : str
        A measure, or "loss" for the negated squared loss.
    convention : str

    Returns
    -------
    array of shape (models, queries)
        NaN where the measure is not defined.
    """
    if measure == "loss":
        residuals = (centred.target - centred.project(centred.root * s) for s in scores)
        return np.array([-squared_by_query(residual, centred) for residual in residuals])
    rows = np.arange(len(data))
    if data.sample_weight is not None:
        weight = data.sample_weight
        whole = bool((weight == np.round(weight)).all()) and weight.max(initial=0.0) < 1e6
        rows = np.repeat(rows, (weight if whole else weight > 0).astype(np.int64))
    ids = None if data.doc_ids is None else data.doc_ids[rows]
    listed = RankingData(
        np.zeros((len(rows), 1)), data.y[rows], centred.query_of[rows], doc_ids=ids
    )
    judge, out = Judge(measure, convention), np.full((len(scores), data.n_queries), np.nan)
    for row, values in zip(out, scores, strict=True):
        row[listed.query_ids] = next(iter(judge.per_query(listed, values[rows]).values()))
    return out


def warn_of_single_query(centred: Centred, what: str) -> None:
    """Warn if a single query counts: leave-query-out then cannot choose."""
    if centred.only_query >= 0:
        warn(f"only one query has labels that differ, so it cannot be left out: {what}; give qid")


def choose_size(values: FloatArray, rule: str, measure: str = "loss") -> int:
    """Return the position of the chosen model; models are sorted from simple to complex.

    Parameters
    ----------
    values : array of shape (models, queries)
        The measure of each model on each query, as ``measure_scores`` returns it.
    rule : {"best", "1se"}
        The best mean, or the first model within one standard error of it.

    Examples
    --------
    >>> values = np.array([[0.1, 0.3], [0.4, 0.62], [0.41, 0.61]])
    >>> choose_size(values, "best"), choose_size(values, "1se")
    (1, 1)
    """
    negated = measure in ("loss", "criterion")
    worth = values * (1.0 if negated else better_sign(measure))
    means = np.array([mean_of(row) for row in worth])
    if np.isnan(means).all():
        raise InputError(
            "the measure is not defined on any left-out query: choose another measure or convention"
        )
    best = best_of(np.where(np.isnan(means), -np.inf, means))
    return best if rule == "best" else int(np.flatnonzero(as_good_as(worth, best))[0])


def squared_by_query(residual: FloatArray, centred: Centred) -> FloatArray:
    """Return the sum of the squares of a residual over each query."""
    n_queries = len(centred.query_ptr) - 1
    return np.asarray(np.bincount(centred.query_of, residual**2, n_queries), dtype=np.float64)
