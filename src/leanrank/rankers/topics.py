"""Many ranking functions over one collection: a sparse weight vector for each topic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import FloatArray, Matrix
from leanrank.data.ranking_data import RankingData, column_values
from leanrank.designs.base import make_design
from leanrank.errors import InputError, warn
from leanrank.execution import Executor, make_executor, single_threaded_blas
from leanrank.losses.base import Labels
from leanrank.metrics.judge import Judge
from leanrank.rankers.inputs import validated_matrix
from leanrank.rankers.linear_ranker import LinearRanker
from leanrank.rankers.parameters import check_parameters, reject_unused
from leanrank.rankers.path import BaseLinearRanker, alpha_grid, descending, measure_models
from leanrank.rankers.systems import DominationRanker
from leanrank.solvers.base import Solution

if TYPE_CHECKING:
    from leanrank.metrics import Evaluation

MEASURES = ("map", "p@10", "domination_error", "all_pairs_error")


@dataclass(eq=False, repr=False)
class TopicRanker(BaseEstimator):
    """Fit one ranking function per topic on documents that all topics share.

    Each topic ranks the whole collection: its documents above all others. X and its column form are
    held in memory once, whatever the number of topics.

    Parameters
    ----------
    ranker : linear ranker, optional
        The ranker that is fitted to each topic, by default ``DominationRanker()``. Validation data
        choose its alpha if it has a path, and stop it early if it learns in rounds.
    n_alphas : int, default=20
        With validation data: number of alphas to try, from ``alpha_max``, the smallest with an
        empty model, down.
    alpha_min_ratio : float, default=0.01
        The smallest alpha as a share of ``alpha_max``.
    alphas : iterable of float, optional
        Alphas to try instead.
    measure : str, default="map"
        Measure on validation data that chooses alpha; a model without features is never chosen
        unless all are.
    n_jobs : int, optional
        Threads: over topics, or within the topic if there is only one. The result does not depend
        on it.

    Attributes
    ----------
    coef_ : CSR array of shape (topics, features)
    alphas_ : array of shape (topics,)
        The alpha of each topic; NaN if the ranker has no path.
    dual_gaps_ : array of shape (topics,)
        The duality gap of each topic; NaN if the ranker has no path.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from leanrank.rankers import DominationRanker, TopicRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 6))
    >>> Y = np.column_stack([X[:, 0] > 1, X[:, 3] - X[:, 4] > 1.5])
    >>> topics = TopicRanker(DominationRanker(alpha=0.1)).fit(X, Y)
    >>> topics.coef_.shape, topics.predict(X).shape
    ((2, 6), (200, 2))
    >>> bool(topics.evaluate(X, Y).means["map"] > 0.9)
    True
    """

    ranker: Any = None
    _: KW_ONLY
    n_alphas: int = 20
    alpha_min_ratio: float = 0.01
    alphas: Iterable[float] | None = None
    measure: str = "map"
    n_jobs: int | None = None

    def fit(self, X: Any, Y: Any, *, validation: tuple[Any, Any] | None = None) -> Self:
        """Fit one ranking function per column of Y.

        Parameters
        ----------
        X : array or SciPy sparse matrix of shape (documents, features)
        Y : array or SciPy sparse matrix of shape (documents, topics)
            Labels, 0/1 or graded.
        validation : (X, Y), optional
            Other documents with the same topics.
        """
        ranker: Any = DominationRanker() if self.ranker is None else self.ranker
        if not isinstance(ranker, BaseLinearRanker):
            raise InputError(f"ranker={ranker!r} is not a linear ranker of leanrank: give one")
        check_parameters(ranker)
        grid = ("n_alphas", "alpha_min_ratio")
        if not isinstance(ranker, LinearRanker) or validation is None:
            because = "a ranker without a path, or without validation data"
            reject_unused(self, (*grid, "alphas", "measure"), because)
        elif self.alphas is not None:
            reject_unused(self, grid, "alphas")
        matrix = validated_matrix(self, X, reset=True)
        labels = _label_columns(Y, matrix.shape[0])
        _check_levels(labels, "documents")
        held_out = None
        if validation is not None:
            if not isinstance(validation, (tuple, list)) or len(validation) != 2:
                raise InputError("validation must be a pair (X, Y)")
            other = validated_matrix(self, validation[0], reset=False)
            held_out = other, _label_columns(validation[1], other.shape[0], labels.shape[1])
            _check_levels(held_out[1], "validation documents")
        with single_threaded_blas():
            fits = self._fit_all(ranker, matrix, labels, held_out)
        rows, alphas, gaps, unconverged = zip(*fits, strict=True)
        if any(unconverged):
            warn(
                f"{sum(unconverged)} models stopped above a relative duality gap of "
                f"tol={ranker.tol:g}: raise max_iter or tol",
                ConvergenceWarning,
            )
        self.coef_ = vstack(rows, format="csr")
        self.alphas_, self.dual_gaps_ = np.array(alphas), np.array(gaps)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Score documents for every topic: an array of shape (documents, topics)."""
        check_is_fitted(self)
        scores = validated_matrix(self, X, reset=False) @ self.coef_.T
        return np.asarray(scores.toarray() if hasattr(scores, "toarray") else scores)

    def evaluate(
        self, X: Any, Y: Any, *, measures: Sequence[str] = MEASURES, convention: str = "standard"
    ) -> Evaluation:
        """Measure each topic as one query; means are over topics where a measure is defined."""
        from leanrank.metrics import evaluate, percent_zero

        scores = self.predict(X)
        labels = _label_columns(Y, *scores.shape)
        truth = labels if isinstance(labels, np.ndarray) else labels.toarray()
        found = evaluate(
            np.ravel(truth, "F").astype(np.float64), np.ravel(scores, "F"),
            group=[len(scores)] * scores.shape[1],  # a topic is one query
            measures=list(measures), convention=convention,
        )  # fmt: skip
        zeros = np.array([percent_zero(w) for w in self.coef_.toarray()])
        means = found.means | {"percent_zero": float(zeros.mean())}
        return replace(found, means=means, per_query=found.per_query | {"percent_zero": zeros})

    def _fit_all(
        self, ranker: Any, X: Matrix, Y: Matrix, held_out: tuple[Matrix, Matrix] | None
    ) -> list[tuple[Any, float, float, int]]:
        """Return for each topic its sparse weights, alpha, gap and number of unconverged fits."""
        topics = range(Y.shape[1])
        outer = make_executor(self.n_jobs if len(topics) > 1 else None)
        inner = Executor() if len(topics) > 1 else make_executor(self.n_jobs)
        has_path = isinstance(ranker, LinearRanker)
        design = make_design(X, inner) if has_path else None  # once for all topics

        def fit_topic(topic: int) -> tuple[Any, float, float, int]:
            y = _column(Y, topic)
            if not has_path:
                options = {}
                if held_out is not None and ranker._takes_validation:
                    options["validation"] = (held_out[0], _column(held_out[1], topic), None)
                w = clone(ranker).fit(X, y, **options).coef_
                return csr_array(w[None, :]), np.nan, np.nan, 0
            labels = Labels(y, np.array([0, len(y)], dtype=np.int64), normalize=ranker.normalize)
            problem = ranker._make_problem(design, labels, inner)
            if held_out is None:
                grid = np.array([ranker.alpha])
            elif self.alphas is not None:
                grid = descending(self.alphas)
            else:  # without a useful feature, the model is empty at any alpha
                top = ranker._first_entry(problem)[0] or 1.0
                grid = alpha_grid(top, self.n_alphas, self.alpha_min_ratio)
            solutions = ranker._solve_path(problem, grid)
            at = 0 if held_out is None else self._best(solutions, held_out, topic)
            row = csr_array(solutions[at].w[None, :])
            unconverged = sum(not solution.converged for solution in solutions)
            return row, grid[at], solutions[at].gap, unconverged

        return outer.map(fit_topic, topics)

    def _best(self, solutions: list[Solution], held_out: tuple[Matrix, Matrix], topic: int) -> int:
        """Return the position of the best model of a topic; models without features come last."""
        coefs = np.array([solution.w for solution in solutions])
        data = RankingData(held_out[0], _column(held_out[1], topic))
        values = measure_models(coefs, data, (self.measure,), "standard")[self.measure]
        worth = np.where(coefs.any(axis=1), Judge(self.measure).worth(values), -np.inf)
        return int(np.argmax(worth))


def _label_columns(Y: Any, n_rows: int, n_topics: int | None = None) -> Matrix:
    """Return a checked label matrix, dense or CSC."""
    if hasattr(Y, "tocsc"):
        labels = Y.tocsc(copy=True)  # it is made canonical in place
        labels.sum_duplicates()
    else:
        labels = np.asarray(Y)
        labels = labels[:, None] if labels.ndim == 1 else labels
    if labels.ndim != 2 or labels.shape != (n_rows, n_topics or max(1, labels.shape[1])):
        raise InputError(
            f"Y has shape {labels.shape} but there are {n_rows} documents"
            f"{f' and {n_topics} topics' if n_topics else ''}: give documents × topics"
        )
    stored = labels if isinstance(labels, np.ndarray) else labels.data
    if stored.dtype.kind not in "biuf" or not np.isfinite(stored).all():
        raise InputError("Y holds something that is not a finite number: give 0 and 1, or grades")
    return labels


def _check_levels(labels: Matrix, documents: str) -> None:
    for topic in range(labels.shape[1]):
        y = _column(labels, topic)
        if y.min() == y.max():
            raise InputError(f"topic {topic} has all {documents} at one level: leave it out")


def _column(labels: Matrix, topic: int) -> FloatArray:
    return np.ascontiguousarray(column_values(labels, topic), dtype=np.float64)
