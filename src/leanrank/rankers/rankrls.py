"""RankRLS with features or kernels: regularised least squares within each query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from leanrank._numbers import check_number
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
from leanrank.rankers.base import BaseRanker
from leanrank.rankers.parameters import POSITIVE, Constraints, Uses
from leanrank.rankers.path import BaseLinearRanker, alpha_grid, descending
from leanrank.solvers.base import Solution
from leanrank.solvers.least_squares import ridge, spectrum
from leanrank.solvers.least_squares.centred import Centred
from leanrank.solvers.least_squares.ridge import LARGEST_FACTORISATION
from leanrank.solvers.least_squares.spectrum import Spectrum


class LeaveQueryOut(BaseRanker):
    """A ranker with closed-form leave-query-out scores; a subclass defines ``_factorise``."""

    alpha: float
    n_jobs: int | None

    def _factorise(self, data: RankingData, labels: Labels) -> Spectrum:
        raise AssertionError(f"{type(self).__name__} must define _factorise")

    def leave_query_out(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        alphas: Iterable[float] | None = None,
        **options: Any,
    ) -> FloatArray:
        """Return the score of every document by the model of the *other* queries, in closed form.

        One factorisation serves all queries and all alphas. Leaving a query out removes its loss
        from the objective and changes nothing else: with ``normalize="none"`` the scores are
        exactly those of training on the other queries; with another normalisation, the divisor
        remains that of all queries.

        Parameters
        ----------
        X, y, qid : as for fit
        alphas : iterable of float, optional
            Positive strengths; by default the ranker's alpha.
        **options
            Further arguments of ``fit``.

        Returns
        -------
        array of shape (n_alphas, documents)
            In the order of ``alphas`` and of the rows given.
        """
        listed = [self.alpha] if alphas is None else alphas
        grid = np.array([check_number("alpha", a, open_low=True) for a in listed])
        twin = clone(self)
        with single_threaded_blas():
            data, labels = twin._data_and_labels(X, y, qid, **options)
            factors = twin._factorise(data, labels)
            scores = spectrum.leave_query_out_scores(factors, grid, make_executor(self.n_jobs))
        return scores if data is X else data.restore(scores.T).T


@dataclass(eq=False, repr=False)
class RankRLS(LeaveQueryOut, BaseLinearRanker):
    """Closed-form ranking: a ridge regression on query-centred data (Pahikkala et al. 2007).

    Solved by conjugate gradients where these are faster than a factorisation; otherwise by a
    factorisation of the primal or, with fewer documents than features, of the dual problem. A
    sparse X is never made dense.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the ℓ2² penalty. With ``normalize="none"`` it is the paper's λ.
    normalize : {"query", "term", "none"}, default="query"
        What each query's loss is divided by: its number of terms, the terms of all queries, or
        nothing. A query has as many terms as documents.
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
    _has_strength = True

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        alpha, problem = float(self.alpha), self._problem(data, labels)
        few = len(data) < data.n_features and len(data) <= LARGEST_FACTORISATION
        if isinstance(data.X, Shards) or not few:
            self.coef_ = ridge.solve_ridge(problem, [alpha])[0]
            return
        w = ridge.iterate_ridge(problem, alpha, len(data))
        dual = centred_on_queries(data, labels)
        self.coef_ = ridge.solve_ridge_dual(dual, alpha) if w is None else w

    def _problem(self, data: RankingData, labels: Labels) -> Problem:
        loss = SquaredLoss()
        if isinstance(data.X, Shards):
            return ShardedProblem(data.X, loss, self.normalize)
        return MemoryProblem(data.X, loss, loss.prepare(labels), make_executor(self.n_jobs))

    def _path(
        self, data: RankingData, labels: Labels, alphas: Iterable[float] | None, **grid: Any
    ) -> tuple[FloatArray, list[Solution]]:
        """Solve a linear system for each alpha, from one factorisation: every gap is 0."""
        strengths = alpha_grid(np.inf, **grid) if alphas is None else descending(alphas)
        problem, solutions = self._problem(data, labels), []
        if isinstance(data.X, Shards):
            coefs = ridge.solve_ridge(problem, strengths.tolist())
        else:
            coefs = np.array(list(map(self._factorise(data, labels).weights, strengths.tolist())))
        for alpha, w in zip(strengths.tolist(), coefs, strict=True):
            objective = problem.at(w) + 0.5 * alpha * float(np.sum(w**2))
            solutions.append(Solution(w, objective, 0.0, 0.0, 1, True))
        return strengths, solutions

    def _factorise(self, data: RankingData, labels: Labels) -> Spectrum:
        return spectrum.factorise(centred_on_queries(data, labels))


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
        For "poly" and "rbf"; by default one over the number of features.
    degree : int, default=3
        For "poly": the exponent of (gamma ⟨x, z⟩ + coef0) ** degree.
    coef0 : float, default=1.0
        For "poly": the constant term.
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

    _learned: ClassVar[str] = "dual_coef_"
    _constraints: ClassVar[Constraints] = {"alpha": [POSITIVE]}
    _used_with: ClassVar[Uses] = {
        "gamma": ("kernel", ("poly", "rbf")),
        "degree": ("kernel", ("poly",)),
        "coef0": ("kernel", ("poly",)),
    }

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        factors = self._factorise(data, labels)
        grouped = factors.centred.root * factors.dual_coefficients(float(self.alpha))
        if self.kernel == "precomputed":  # columns of new rows are in the order of X in fit
            self.dual_coef_ = np.empty(len(grouped))
            self.dual_coef_[self._columns] = grouped
        else:
            self.dual_coef_ = grouped
            self.X_fit_ = data.X

    def _scores(self, X: Matrix) -> FloatArray:
        used = np.flatnonzero(self.dual_coef_)
        if self.kernel == "precomputed":
            scores = np.asarray(X @ self.dual_coef_, dtype=np.float64)
        elif not len(used):  # alpha is so large that all coefficients vanish
            scores = np.zeros(X.shape[0])
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                scores = self._similarities(X, self.X_fit_[used]) @ self.dual_coef_[used]
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise InputError(f"the score of row {row} is too large for a number")
        return scores

    def _data_and_labels(
        self, X: Any, y: Any = None, qid: Any = None, **options: Any
    ) -> tuple[RankingData, Labels]:
        data, labels = super()._data_and_labels(X, y, qid, **options)
        grouped = data is X or data.order is None
        self._columns = slice(None) if grouped else data.order  # for a precomputed kernel
        return data, labels

    def _factorise(self, data: RankingData, labels: Labels) -> Spectrum:
        if len(data) > LARGEST_FACTORISATION:
            raise InputError(
                f"the kernel matrix of {len(data):,} documents is too large: take a sample, or "
                "scikit-learn's Nystroem and RankRLS"
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
        centred = centred_on_queries(data, labels)
        outer = centred.project(centred.root[:, None] * kernel.T).T
        return spectrum.factorise_kernel(centred, outer)

    def _similarities(self, left: Matrix, right: Matrix) -> FloatArray:
        from sklearn.metrics.pairwise import pairwise_kernels

        pair = left.astype(np.float64), right.astype(np.float64)
        options = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        values = pairwise_kernels(*pair, metric=self.kernel, filter_params=True, **options)
        return np.asarray(values.toarray() if hasattr(values, "toarray") else values)

    def to_model(self, *, provenance: Mapping[str, Any] | None = None) -> Model:
        """Raise an error: a model file holds weights of features."""
        raise ModelError(
            "a kernel model is not linear and has no model file: use RankRLS, or pickle"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def centred_on_queries(data: RankingData, labels: Labels) -> Centred:
    """Return the least-squares problem of RankRLS, with centred queries."""
    return Centred.from_plan(data.X, SquaredLoss().prepare(labels))
