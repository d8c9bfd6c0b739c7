"""A shard of a problem: documents of whole queries in one place, and sums over them.

A *request* carries weights, an *answer* the shard's summand of a value, a gradient or a Hessian:
only model-sized things travel. What has one entry per document stays with the shard.

**An answer is a pure function of the request.** A shard caches the problem and the weights of the
last request, only to save time: one that was read again elsewhere gives the same bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.designs.base import Design, make_design
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.surfaces import SurfaceColumns, columns_design
from leanrank.execution import Executor, cached_property, single_threaded_blas
from leanrank.losses.base import Labels, Loss, query_shares
from leanrank.problem.memory import MemoryProblem

Sums: TypeAlias = tuple[Any, ...]
"""Numbers and arrays, added one by one."""


@dataclass(frozen=True)
class Setup:
    """The parameters of a problem that a shard needs besides its documents.

    Attributes
    ----------
    key : str
        The problem's name.
    loss : Loss
    normalize : str
    relabel : callable, optional
        Applied to the labels first, such as a ranker's margins.
    levels : array, optional
        The distinct labels of all shards together.
    total : float, optional
        S of the objective, over all shards; None until it is known.
    ramps : RampColumns or SurfaceColumns, optional
        The columns of curves and surfaces, with their knots; None for the features themselves.
    """

    key: str
    loss: Loss[Any]
    normalize: str = "query"
    relabel: Callable[[Labels], Labels] | None = None
    levels: FloatArray | None = None
    total: float | None = None
    ramps: RampColumns | SurfaceColumns | None = None


class Shard:
    """Some documents of whole queries.

    Parameters
    ----------
    data : RankingData
    gain_weight : array, optional
        In grouped order.
    """

    def __init__(self, data: RankingData, gain_weight: FloatArray | None = None) -> None:
        self.data = data
        self.gain_weight = gain_weight
        self._lock = threading.Lock()
        self._shares: tuple[str, FloatArray, float] = "", np.zeros(0), 0.0
        self._last: tuple[str, MemoryProblem | None] = "", None
        self._at: tuple[FloatArray, IntArray | None] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without what is cached."""
        return Shard, (self.data, self.gain_weight)

    def __sizeof__(self) -> int:
        X = self.data.X
        return int(X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes)

    def sums(
        self, setup: Setup, want: Any, w: FloatArray, features: IntArray | None, *more: Any
    ) -> Sums | None:
        """Return this shard's summand; None if it has nothing to learn from.

        Parameters
        ----------
        setup : Setup
        want : str or callable
            Which sums, one of ``WANTED`` or a function of the problem.
        w : array
            The weights.
        features : array or None
            The working set; None for all features.
        *more
            What else the sums depend on.
        """
        with self._lock, single_threaded_blas(), np.errstate(all="ignore"):
            if self._last[0] != setup.key:
                self._last, self._at = (setup.key, self._problem(setup)), None
            problem = self._last[1]
            if problem is None:
                return None
            self._move(problem, w, features)
            if want in _IN_SET:
                problem.block  # noqa: B018  (sums over all features are by their block, too)
            return (WANTED[want] if isinstance(want, str) else want)(problem, *more)

    def _move(self, problem: MemoryProblem, w: FloatArray, features: IntArray | None) -> None:
        """Move the problem to weights and a working set, unless it is there."""
        before, self._at = self._at, (w, features)
        if before is not None and _equal(features, before[1]):
            if np.array_equal(w, before[0]):
                return
        elif features is not None:
            problem.focus(features)
        (problem.at if features is None else problem.move_to)(w)

    def total(self, setup: Setup) -> float:
        """Return this shard's summand of S."""
        self._shares = setup.key, *query_shares(setup.loss.unweighed, self._labels(setup))
        return self._shares[2]

    def _problem(self, setup: Setup) -> MemoryProblem | None:
        if self._shares[0] != setup.key:
            self.total(setup)
        _, shares, total = self._shares
        assert setup.total is not None
        if not total > 0.0:
            return None
        labels = replace(self._labels(setup), normalize="none", query_weight=shares / setup.total)
        columns = self._design
        if setup.ramps is not None:
            columns = columns_design(self.data.X, setup.ramps, Executor())
        loss = setup.loss.unweighed  # the shares have its weights
        return MemoryProblem(columns, loss, loss.prepare(labels))

    @cached_property
    def _design(self) -> Design:
        return make_design(self.data.X, None, self.data.query_ptr)

    def _labels(self, setup: Setup) -> Labels:
        data = self.data
        labels = Labels(
            y=data.y,
            query_ptr=data.query_ptr,
            sample_weight=data.sample_weight,
            query_weight=data.query_weight,
            gain_weight=self.gain_weight,
            offset=data.offset,
            normalize=setup.normalize,
            levels=setup.levels,
        )
        return setup.loss.weighed(labels if setup.relabel is None else setup.relabel(labels))


def _equal(a: IntArray | None, b: IntArray | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _point(problem: MemoryProblem) -> Sums:
    g = problem.point.g
    return problem.point.value, float(g @ g), problem.gradient()


def _hessian(problem: MemoryProblem, exact: bool, share: float | None) -> Sums:
    """Sum a Hessian; with a share, of about that share of the documents."""
    thin = None if share is None else max(1, round(share * problem.n_rows))
    hessian = problem.hessian(problem.block, problem.point.u, exact=exact, thin=thin)
    sampled, exact_diagonal = problem.sampled(thin)
    upper = hessian[np.triu_indices(len(hessian))]  # symmetric: half of it travels
    return upper, float(sampled), float(not exact_diagonal)


WANTED: Mapping[str, Callable[..., Sums]] = {
    "point": _point,
    "norms": lambda problem: (problem.design.column_norms**2, problem.design.summed_norms**2),
    "dual": lambda problem, a: (problem.dual(a),),
    "focused": lambda problem: (problem.point.value, problem.focused_gradient()),
    "hessian": _hessian,
    "product": lambda problem, v: (problem.product(v),),
}
_IN_SET = ("focused", "hessian", "product")
