"""RankRLS with features or kernels: regularised least squares within each query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import FloatArray, Matrix
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, ModelError
from leanrank.execution import make_executor, single_threaded_blas
from leanrank.losses.base import Labels
from leanrank.losses.squared import SquaredLoss
from leanrank.model import Model
from leanrank.problem.base import Problem
from leanrank.problem.memory import MemoryProblem
from leanrank.problem.sharded import ShardedProblem, Shards
from leanrank.rankers.base import BaseLinearRanker
from leanrank.rankers.inputs import held_out_data
from leanrank.rankers.leave_query_out import (
    LeaveQueryOut,
    choose_size,
    measure_scores,
    warn_of_single_query,
)
from leanrank.rankers.parameters import CONSTRAINTS, POSITIVE, Constraints, Uses
from leanrank.rankers.path import Path, descending, path_of
from leanrank.solvers.base import Solution
from leanrank.solvers.least_squares.centred import Centred
from leanrank.solvers.least_squares.ridge import (
    LARGEST_FACTORISATION,
    iterate_ridge,
    solve_ridge,
    solve_ridge_dual,
    solve_ridge_path,
)
from leanrank.solvers.least_squares.spectrum import (
    DualSpectrum,
    Spectrum,
    factorise,
    factorise_kernel,
    leave_query_out_scores,
)


@dataclass(eq=False, repr=False)
class RankRLS(LeaveQueryOut, BaseLinearRanker):
    """Closed-form ranking: a ridge regression on query-centred data (Pahikkala et al. 2007).

    Solved by conjugate gradients where they take less time than a linear system; else by one in the
    primal, or in the dual if documents are fewer than features. A sparse X stays sparse.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the ℓ2² penalty. With ``normalize="none"`` it is the paper's λ.
    normalize : {"query", "term", "none"}, default="query"
        Whether every query, every document or nothing is normalised; see the objective in the
        documentation.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import RankRLS
    >>> data = make_ranking(n_queries=30, random_state=0)
    >>> ranker = RankRLS(alpha=0.01).fit(data.X, data.y, qid=data.qid)
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.5)
    True

    Score each query by the model of the other queries:

    >>> scores = ranker.leave_query_out(data.X, data.y, qid=data.qid, alphas=[0.001, 0.1])
    >>> scores.shape == (2, len(data))
    True
    """

    alpha: float = 1e-3
    _: KW_ONLY
    normalize: str = "query"
    n_jobs: int | None = None

    _fits_on_cluster = True

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        del held_out
        alpha, loss = float(self.alpha), SquaredLoss()
        if isinstance(data.X, Shards):
            self.coef_ = solve_ridge(ShardedProblem(data.X, loss, self.normalize), alpha)
            return
        plan = loss.prepare(labels)
        problem = MemoryProblem(data.X, loss, plan, make_executor(self.n_jobs))
        if len(data) < data.n_features and len(data) <= LARGEST_FACTORISATION:
            w = iterate_ridge(problem, alpha, len(data))
            dual = Centred.from_plan(data.X, plan)
            self.coef_ = solve_ridge_dual(dual, alpha) if w is None else w
        else:
            self.coef_ = solve_ridge(problem, alpha)

    def path(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        alphas: Iterable[float],
        validation: Any = None,
        measures: Sequence[str] = ("ndcg@10",),
        convention: str = "standard",
        **options: Any,
    ) -> Path:
        """Solve for several alphas from one factorisation.

        Parameters
        ----------
        X, y, qid : as for fit
        alphas : iterable of float
        validation : RankingData or (X, y, qid), optional
            Where to measure each model.
        measures : sequence of str
        convention : str
        **options
            What else ``fit`` takes.

        Returns
        -------
        Path
            Models by descending alpha; their gap is 0, as they solve a linear system.
        """
        twin = clone(self)
        data, labels = twin._data_and_labels(X, y, qid, **options)
        twin._count_queries(data, labels)
        grid = descending(alphas)
        held_out = held_out_data(twin, validation)
        loss = SquaredLoss()
        problem: Problem
        with single_threaded_blas():
            if isinstance(data.X, Shards):
                problem = ShardedProblem(data.X, loss, self.normalize)
                coefs = solve_ridge_path(problem, grid.tolist())
            else:
                plan = loss.prepare(labels)
                spectrum = self._factorise(data, labels)
                coefs = np.array([spectrum.weights(float(alpha)) for alpha in grid])
                problem = MemoryProblem(data.X, loss, plan, make_executor(self.n_jobs))
            solutions = [
                Solution(
                    w, problem.at(w) + 0.5 * alpha * float(np.sum(w**2)), 0.0, 0.0, 1, True, []
                )
                for alpha, w in zip(grid.tolist(), coefs, strict=True)
            ]
        return path_of(twin, grid, solutions, held_out, measures, convention)

    def _factorise(self, data: RankingData, labels: Labels) -> Spectrum:
        return factorise(Centred.from_plan(data.X, SquaredLoss().prepare(labels)))


@dataclass(eq=False, repr=False)
class RankRLSCV(BaseLinearRanker):
    """RankRLS with the alpha that ranks each query best when that query is left out of training.

    The leave-query-out scores are exact and cost little more than one fit: one factorisation serves
    every alpha and every query.

    Parameters
    ----------
    alphas : iterable of float, default=1e-6 … 1e2 by factors of ten
        Positive strengths to choose from.
    measure : str, default="ndcg@10"
        Any measure of ``leanrank.metrics.evaluate``, or "loss" for the squared loss itself.
    convention : str, default="standard"
        How the measure treats ties, short lists and so on.
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
        Ascending.
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
        del held_out
        grid = descending(self.alphas)[::-1]
        if grid[0] <= 0:
            raise InputError("alphas must be positive: alpha=0 has no unique left-out model")
        centred = Centred.from_plan(data.X, SquaredLoss().prepare(labels))
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


@dataclass(eq=False, repr=False)
class KernelRankRLS(LeaveQueryOut):
    """RankRLS whose score is a sum of similarities to the training documents.

    The kernel matrix of all training documents is factorised: at most 8,192 of them.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the penalty, above 0. With ``normalize="none"`` it is the paper's λ.
    kernel : {"linear", "poly", "rbf", "precomputed"}, default="rbf"
        "precomputed": X is the kernel matrix of the documents in the order given; to predict, one
        row per new document and one column per training document.
    gamma : float, optional
        Of "poly" and "rbf"; by default one over the number of features.
    degree : int, default=3
        Of "poly": (gamma ⟨x, z⟩ + coef0) ** degree.
    coef0 : float, default=1.0
        Of "poly": the constant term.
    normalize : {"query", "term", "none"}, default="query"
        As for RankRLS.
    n_jobs : int, optional
        Threads for leave-query-out; the result does not depend on it.

    Attributes
    ----------
    dual_coef_ : array
        One coefficient per training document; 0 in queries whose labels do not differ.
    X_fit_ : array or CSR array
        The training documents, grouped by query as ``dual_coef_`` is.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import KernelRankRLS
    >>> data = make_ranking(n_queries=20, random_state=0)
    >>> ranker = KernelRankRLS(0.01, kernel="rbf", gamma=0.01).fit(data.X, data.y, qid=data.qid)
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.5)
    True
    """

    alpha: float = 1e-3
    _: KW_ONLY
    kernel: str = "rbf"
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0
    normalize: str = "query"
    n_jobs: int | None = None

    _constraints: ClassVar[Constraints] = {
        **CONSTRAINTS,
        "alpha": [POSITIVE],
        "gamma": [POSITIVE, None],
    }
    _used_with: ClassVar[Uses] = {
        "gamma": ("kernel", ("poly", "rbf")),
        "degree": ("kernel", ("poly",)),
        "coef0": ("kernel", ("poly",)),
    }

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        del held_out
        spectrum = self._factorise(data, labels)
        grouped = spectrum.centred.root * spectrum.dual_coefficients(float(self.alpha))
        if self.kernel == "precomputed":  # columns of new rows come in the order given here
            self.dual_coef_ = np.empty(len(grouped))
            self.dual_coef_[self._columns] = grouped
        else:
            self.dual_coef_ = grouped
            self.X_fit_ = data.X

    def predict(self, X: Any) -> FloatArray:
        """Score documents, in the order given; a higher score ranks first."""
        check_is_fitted(self, "dual_coef_")
        matrix = self._checked_features(X)
        used = np.flatnonzero(self.dual_coef_)
        if self.kernel == "precomputed":
            scores = np.asarray(matrix @ self.dual_coef_, dtype=np.float64)
        elif not len(used):  # labels that vanish beside alpha
            scores = np.zeros(matrix.shape[0])
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                scores = self._similarities(matrix, self.X_fit_[used]) @ self.dual_coef_[used]
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise InputError(f"the score of row {row} is too large for a number")
        return scores

    def _data_and_labels(
        self, X: Any, y: Any = None, qid: Any = None, **options: Any
    ) -> tuple[RankingData, Labels]:
        data, labels = super()._data_and_labels(X, y, qid, **options)
        grouped = data is X or data.order is None
        self._columns = slice(None) if grouped else data.order  # of a precomputed kernel
        return data, labels

    def _factorise(self, data: RankingData, labels: Labels) -> DualSpectrum:
        if len(data) > LARGEST_FACTORISATION:
            raise InputError(
                f"the kernel matrix of {len(data):,} documents is too large, at most "
                f"{LARGEST_FACTORISATION:,}: take a sample, or scikit-learn's Nystroem and RankRLS"
            )
        if self.kernel == "precomputed":
            if data.n_features != len(data):
                raise InputError(
                    f"a precomputed kernel must be square, not {len(data)} × {data.n_features}"
                )
            dense = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
            kernel = dense.astype(np.float64)[:, self._columns]
        else:
            kernel = self._similarities(data.X, data.X)
        centred = Centred.from_plan(data.X, SquaredLoss().prepare(labels))
        outer = centred.project(centred.root[:, None] * kernel.T).T
        return factorise_kernel(centred, outer)

    def _similarities(self, left: Matrix, right: Matrix) -> FloatArray:
        from sklearn.metrics.pairwise import pairwise_kernels

        options: dict[str, Any] = {}
        if self.kernel in ("poly", "rbf") and self.gamma is not None:
            options["gamma"] = float(self.gamma)
        if self.kernel == "poly":
            options |= {"degree": self.degree, "coef0": self.coef0}
        values = pairwise_kernels(
            left.astype(np.float64), right.astype(np.float64), metric=self.kernel, **options
        )
        return np.asarray(values.toarray() if hasattr(values, "toarray") else values)

    def to_model(self, *, provenance: Mapping[str, Any] | None = None) -> Model:
        """Raise an error: a model file holds weights of features."""
        raise ModelError(
            "a kernel model is not linear and cannot be saved as a model file: use RankRLS, or "
            "pickle it"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
