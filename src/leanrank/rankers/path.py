"""A regularisation path: models from the emptiest to the fullest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leanrank._numbers import check_number, check_whole
from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.surfaces import SurfaceColumns
from leanrank.errors import InputError
from leanrank.model import Model
from leanrank.rankers.knots import scores_of_models, weights_model
from leanrank.solvers.base import Solution


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
    measures : dict of str to array
        Each measure of each model on the validation data; NaN for one that ranks nothing.
    ramps : RampColumns or None
        With curves, what ``coefs`` weigh.
    template : ranker or None
        What the path was made with: it knows the features, and has no weights.
    normalizer : Normalizer or None
        What the features were seen through; part of every model.

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
    normalizer: Any = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def n_selected(self) -> IntArray:
        """How many features each model uses."""
        if self.ramps is None:
            return np.count_nonzero(self.coefs, axis=1)
        return np.array([len(self.ramps.used(w)) for w in self.coefs], dtype=np.int64)

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.coefs.shape[1] if self.ramps is None else len(self.ramps.knots)

    @property
    def weights(self) -> FloatArray:
        """The weight of each feature in each model, or the height of its curve."""
        if self.ramps is None:
            return self.coefs
        heights = np.zeros((len(self), self.n_features))
        for at in range(len(self)):
            model = weights_model(self.coefs[at], self.ramps)
            heights[at, model.indices] = model.values
        return heights

    def ranker(self, which: int | str | None = None) -> Any:
        """Return a fitted ranker: one of the path, by its position or as a measure prefers it.

        Without an argument, the first measure decides.
        """
        if self.template is None:
            raise InputError("the path was put together by hand and has no ranker: take model()")
        at = self._position(which)
        ranker = copy(self.template).set_params(alpha=float(self.alphas[at]))
        ranker.coef_ = self.coefs[at].copy()
        if hasattr(ranker, "tol"):  # RankRLS solves a linear system
            ranker.dual_gap_ = float(self.dual_gaps[at])
            ranker.objective_ = float(self.objectives[at])
            ranker.n_iter_ = int(self.n_iters[at])
        return ranker

    def model(self, which: int | str | None = None, **more: Any) -> Model:
        """Return one of the models, chosen as in ``ranker``; ``more`` are parameters of a model."""
        if self.template is not None and not more:
            return self.ranker(which).to_model()
        if self.normalizer is not None:
            more["normalizer"] = self.normalizer.to_dict()
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
        """Return the position of the model that a measure prefers, the sparsest among equals.

        A model without features is never preferred.
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


def path_of(
    template: Any,
    grid: FloatArray,
    solutions: Sequence[Solution],
    held_out: RankingData | None,
    measures: Sequence[str],
    convention: str,
) -> Path:
    """Return the path of a ranker's solutions at descending strengths, measured on held-out data.

    The template knows the features and the parameters, and has no weights.
    """
    coefs = np.array([solution.w for solution in solutions])
    return Path(
        alphas=grid,
        coefs=coefs,
        dual_gaps=np.array([solution.gap for solution in solutions]),
        objectives=np.array([solution.objective for solution in solutions]),
        n_iters=np.array([solution.n_iter for solution in solutions]),
        measures=measure_models(coefs, held_out, measures, convention, template.ramps_),
        ramps=template.ramps_,
        template=template,
    )


def alpha_grid(top: float, n_alphas: int, ratio: float) -> FloatArray:
    """Space strengths evenly on a logarithmic scale, from ``top``, an alpha_max, down.

    >>> alpha_grid(1.0, 3, 0.01).tolist()
    [1.0, 0.1, 0.01]
    """
    if not np.isfinite(top):
        raise InputError("no alpha empties a model without an ℓ1 penalty: give alphas")
    if top == 0.0:
        raise InputError("no penalised feature enters at any alpha: give alphas")
    check_whole("n_alphas", n_alphas)
    if not 0 < ratio < 1:
        raise InputError(f"alpha_min_ratio={ratio!r} must be between 0 and 1")
    return top * np.logspace(0, np.log10(ratio), n_alphas)


def descending(alphas: Iterable[float]) -> FloatArray:
    """Check strengths and sort them, the largest first."""
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
    """Return each measure of each model on held-out data; NaN for a model that ranks nothing."""
    if data is None:
        return {}
    from leanrank.metrics.judge import Judge

    names = (measures,) if isinstance(measures, str) else tuple(measures)
    judge = Judge(names, convention)
    results = [judge.means(data, row) for row in scores_of_models(coefs, ramps, data.X)]
    return {name: np.array([result[name] for result in results]) for name in names}
