"""Linear rankers and their regularisation paths, from strong penalties to weak ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from leanrank._numbers import check_number, check_whole
from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.surfaces import SurfaceColumns
from leanrank.errors import InputError, warn
from leanrank.execution import single_threaded_blas
from leanrank.losses.base import Labels
from leanrank.model import Curve, Model
from leanrank.model.scoring import weighted_sums
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem
from leanrank.rankers.base import BaseRanker
from leanrank.rankers.inputs import held_out_data
from leanrank.rankers.knots import scores_of_models, weights_model
from leanrank.solvers.base import Solution
from leanrank.solvers.newton.solver import Newton

_LAST_MODEL: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""The model of the last prediction of each ranker with curves. Building it takes longer than
scoring a request."""


class BaseLinearRanker(BaseRanker):
    """A ranker whose score is a weighted sum of the features or of their ramps.

    A subclass defines ``_learn``, which sets ``coef_``.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    """

    _has_strength: ClassVar[bool] = False  # whether ``alpha`` gives a path of models

    coef_: FloatArray
    ramps_: RampColumns | SurfaceColumns | None = None  # with curves, the columns of ``coef_``
    history_: list[dict[str, Any]]
    n_iter_: int
    dual_gap_: float
    objective_: float

    def _scores(self, X: Matrix) -> FloatArray:
        if self.ramps_ is not None:
            return self._curves_model().predict(X)
        support = np.flatnonzero(self.coef_)
        if len(support) == X.shape[1]:
            return weighted_sums(X, self.coef_)
        return weighted_sums(X, self.coef_[support], support)

    def _curves_model(self) -> Model:
        """Return the model of the curves; it is built again only when the weights have changed."""
        found = _LAST_MODEL.get(self)
        if found is None or found[0] is not self.ramps_ or not np.array_equal(found[1], self.coef_):
            made = weights_model(self.coef_, self.ramps_, feature_names=self._names())
            found = _LAST_MODEL[self] = self.ramps_, self.coef_.copy(), made
        return found[2]

    @available_if(lambda self: self._has_strength)
    def path(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        alphas: Iterable[float] | None = None,
        n_alphas: int = 50,
        alpha_min_ratio: float = 1e-3,
        validation: Any = None,
        measures: Sequence[str] = ("ndcg@10",),
        convention: str = "standard",
        **options: Any,
    ) -> Path:
        """Solve for a descending sequence of alphas, each started from the previous solution.

        Parameters
        ----------
        X, y, qid : as for fit
        alphas : iterable of float, optional
            The strengths; required without an ℓ1 penalty. By default ``n_alphas`` values, evenly
            spaced on a logarithmic scale.
        n_alphas : int, default=50
            Number of strengths, from ``alpha_max``, the smallest alpha with an empty model, down.
        alpha_min_ratio : float, default=1e-3
            The smallest strength as a share of ``alpha_max``.
        validation : RankingData or (X, y, qid), optional
            Data on which each model is measured.
        measures : sequence of str
            Measures on the validation data.
        convention : str, default="standard"
            Convention of the measures.
        **options
            Further arguments of ``fit``.

        Returns
        -------
        Path
        """
        twin = clone(self)
        twin.callback = getattr(self, "callback", None)  # not a copy of it
        data, labels = twin._data_and_labels(X, y, qid, **options)
        held_out = held_out_data(twin, validation)
        twin._count_queries(data, labels)
        spacing = {"n_alphas": n_alphas, "ratio": alpha_min_ratio}
        with single_threaded_blas():
            grid, solutions = twin._path(data, labels, alphas, **spacing)
        short = [float(a) for a, s in zip(grid, solutions, strict=True) if not s.converged]
        if short:
            warn(
                f"{len(short)} of {len(grid)} models, the first at alpha={short[0]:.3g}, stopped "
                f"above a relative duality gap of tol={twin.tol:g}: raise max_iter or tol",
                ConvergenceWarning,
            )
        twin.callback = None
        coefs = np.array([solution.w for solution in solutions])
        return Path(
            alphas=grid,
            coefs=coefs,
            dual_gaps=np.array([solution.gap for solution in solutions]),
            objectives=np.array([solution.objective for solution in solutions]),
            n_iters=np.array([solution.n_iter for solution in solutions]),
            measures=measure_models(coefs, held_out, measures, convention, twin.ramps_),
            ramps=twin.ramps_,
            template=twin,
        )

    def _path(
        self, data: RankingData, labels: Labels, alphas: Iterable[float] | None, **grid: Any
    ) -> tuple[FloatArray, list[Solution]]:
        """Return the alphas, given or from ``alpha_grid``, in descending order, and solutions."""
        raise AssertionError(f"{type(self).__name__} must define _path")

    @property
    def n_features_(self) -> int:
        """Number of features in the model."""
        check_is_fitted(self, "coef_")
        used = self.coef_.nonzero()[0] if self.ramps_ is None else self.ramps_.used(self.coef_)
        return len(used)

    @property
    def curves_(self) -> dict[str, Curve]:
        """The curve of each feature in use, by name: its contribution to a score."""
        model = self.to_model()
        return {feature_name(at, self._names()): curve for at, curve in model.curves.items()}

    def to_model(self, *, provenance: Mapping[str, Any] | None = None) -> Model:
        """Return the fitted weights as a plain model, which can be saved, sent and exported."""
        check_is_fitted(self, "coef_")
        return weights_model(
            self.coef_,
            self.ramps_,
            feature_names=self._names(),
            provenance={**self._provenance(), **(provenance or {})},
        )


@dataclass(frozen=True)
class Path:
    """Models along descending strengths of a penalty.

    Attributes
    ----------
    alphas : array
        Descending.
    coefs : array of shape (n_alphas, n_features)
        With curves, one row of the ranker's ``coef_`` per model.
    dual_gaps, objectives : array
        The certificate of each model.
    n_iters : array
        Iterations of each model.
    measures : dict of str to array
        Each measure of each model on the validation data; NaN for one that ranks nothing.
    ramps : RampColumns or None
        With curves, the columns of ``coefs``.
    template : ranker or None
        The ranker that made the path: it has the features, but no weights.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import DominationRanker
    >>> train, vali = (make_ranking(n_queries=20, random_state=seed) for seed in (0, 1))
    >>> path = DominationRanker().path(train, validation=vali)
    >>> ranker = path.ranker("ndcg@10")
    >>> ranker.alpha in path.alphas, ranker.dual_gap_ <= 1e-6
    (True, True)
    """

    alphas: FloatArray
    coefs: FloatArray
    dual_gaps: FloatArray
    objectives: FloatArray
    n_iters: IntArray
    measures: dict[str, FloatArray] = field(default_factory=dict)
    ramps: RampColumns | SurfaceColumns | None = None
    template: Any = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def n_selected(self) -> IntArray:
        """Number of features in each model."""
        if self.ramps is None:
            return np.count_nonzero(self.coefs, axis=1)
        return np.array([len(self.ramps.used(w)) for w in self.coefs], dtype=np.int64)

    @property
    def n_features(self) -> int:
        """Number of features of the data."""
        return self.coefs.shape[1] if self.ramps is None else len(self.ramps.knots)

    @property
    def weights(self) -> FloatArray:
        """The weight of each feature in each model; with curves, their heights."""
        if self.ramps is None:
            return self.coefs
        heights = np.zeros((len(self), self.n_features))
        for at in range(len(self)):
            model = weights_model(self.coefs[at], self.ramps)
            heights[at, model.indices] = model.values
        return heights

    def ranker(self, which: int | str | None = None) -> Any:
        """Return a fitted ranker of the path, by its position or the best by a measure.

        The default is the best by the first measure.
        """
        if self.template is None:
            raise InputError("this Path was made without a ranker: use model()")
        at = self._position(which)
        ranker = copy(self.template).set_params(alpha=float(self.alphas[at]))
        ranker.coef_ = self.coefs[at].copy()
        if hasattr(ranker, "tol"):  # RankRLS solves a linear system
            ranker.dual_gap_ = float(self.dual_gaps[at])
            ranker.objective_ = float(self.objectives[at])
            ranker.n_iter_ = int(self.n_iters[at])
        return ranker

    def model(self, which: int | str | None = None, **more: Any) -> Model:
        """Return a model of the path, chosen as in ``ranker``; ``more`` are fields of Model."""
        if self.template is not None and not more:
            return self.ranker(which).to_model()
        return weights_model(self.coefs[self._position(which)], self.ramps, **more)

    def _position(self, which: int | str | None) -> int:
        return self.best(which) if which is None or isinstance(which, str) else which

    def __repr__(self) -> str:
        n = len(self)
        low, high = (0, 0) if n == 0 else (self.n_selected.min(), self.n_selected.max())
        models = f"{n} model{'s' * (n != 1)} of {self.n_features:,} features"
        lines = [f"Path: {models}, {low:,} to {high:,} used"]
        for name, values in self.measures.items():
            if not np.isfinite(values[self.n_selected > 0]).any():
                continue
            at = self.best(name)
            lines.append(
                f"  best {name} {values[at]:.4f} at alpha {self.alphas[at]:.4g} "
                f"with {self.n_selected[at]:,} features"
            )
        return "\n".join(lines)

    def best(self, measure: str | None = None) -> int:
        """Return the position of the best model by a measure, the sparsest among equals.

        A model without features is never the best.
        """
        if not self.measures:
            raise InputError("the path was not measured: give validation= to path()")
        name = next(iter(self.measures)) if measure is None else measure
        if name not in self.measures:
            raise InputError(
                f"the path was not measured by {name!r}, only by {list(self.measures)}"
            )
        from leanrank.metrics.judge import Judge, best_of

        worth = np.where(self.n_selected > 0, Judge(name).worth(self.measures[name]), -np.inf)
        return best_of(worth, self.n_selected)


def alpha_max(problem: Problem, unit: Penalty, tol: float = 1e-8) -> tuple[float, FloatArray]:
    """Return the factor of a penalty above which the model is empty, and the weights there.

    Only unpenalised features have weights other than zero; these minimise the loss.
    """
    w = np.zeros(problem.n_features)
    free = unit.free & ~unit.excluded
    if free.any():
        w = Newton(tol=tol).solve(problem, unit.only_free()).w
    problem.at(w)
    gradient = problem.gradient()
    gradient[free] = 0.0
    return unit.alpha_max_ratio(gradient), w


def alpha_grid(top: float, n_alphas: int, ratio: float) -> FloatArray:
    """Return strengths evenly spaced on a logarithmic scale, from ``top``, an alpha_max, down.

    >>> alpha_grid(1.0, 3, 0.01).tolist()
    [1.0, 0.1, 0.01]
    """
    if not np.isfinite(top):
        raise InputError("no alpha gives an empty model without an ℓ1 penalty: give alphas")
    if top == 0.0:
        raise InputError("no penalised feature enters at any alpha: give alphas")
    check_whole("n_alphas", n_alphas)
    if not 0 < ratio < 1:
        raise InputError(f"alpha_min_ratio={ratio!r} must be between 0 and 1")
    return top * np.logspace(0, np.log10(ratio), n_alphas)


def descending(alphas: Iterable[float]) -> FloatArray:
    """Return checked strengths in descending order."""
    grid = np.sort([check_number("alphas", a) for a in alphas])[::-1]
    if len(grid) == 0:
        raise InputError("alphas is empty: give at least one")
    return grid


def measure_models(
    coefs: FloatArray,
    data: RankingData | None,
    measures: Sequence[str],
    convention: str,
    ramps: RampColumns | SurfaceColumns | None = None,
) -> dict[str, FloatArray]:
    """Return each measure of each model on held-out data; NaN if all its scores are equal."""
    if data is None:
        return {}
    from leanrank.metrics.judge import Judge

    names = (measures,) if isinstance(measures, str) else tuple(measures)
    judge = Judge(names, convention)
    results = [judge.means(data, row) for row in scores_of_models(coefs, ramps, data.X)]
    return {name: np.array([result[name] for result in results]) for name in names}
