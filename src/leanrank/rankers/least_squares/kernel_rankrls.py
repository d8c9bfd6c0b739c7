"""RankRLS with kernels, solved in the dual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import FloatArray, Matrix
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, ModelError
from leanrank.losses.base import Labels
from leanrank.losses.squared import SquaredLoss
from leanrank.rankers.least_squares.rankrls import LeaveQueryOut
from leanrank.rankers.parameters import CONSTRAINTS, POSITIVE, Constraints, Uses
from leanrank.solvers.least_squares.centred import Centred
from leanrank.solvers.least_squares.ridge import LARGEST_FACTORISATION
from leanrank.solvers.least_squares.spectrum import DualSpectrum, factorise_kernel

if TYPE_CHECKING:
    from leanrank.model import Model


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
    >>> from leanrank import KernelRankRLS, make_ranking
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

    parameter_constraints: ClassVar[Constraints] = {
        **CONSTRAINTS,
        "alpha": [POSITIVE],
        "gamma": [POSITIVE, None],
    }
    used_with: ClassVar[Uses] = {
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
        matrix = self.checked_features(X)
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
