"""A part of a problem: documents of whole queries in one place, and sums over them.

A *request* carries weights, an *answer* the part's share of a value, a gradient or a Hessian: only
model-sized things travel. What has one entry per document stays with the part.

**An answer is a pure function of the request.** A part remembers the problems and the weights that
it was asked about last, only to save time: one that lost its memory, or was read again elsewhere,
gives the same bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.designs.base import Design, make_design
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.ramps import ramp_design
from leanrank.execution import SerialExecutor, cached_property, single_threaded_blas
from leanrank.losses.base import Labels, Loss, query_shares
from leanrank.problem.memory import MemoryProblem

Share: TypeAlias = tuple[Any, ...]
"""What one part adds to a sum: numbers and arrays, added one by one."""


@dataclass(frozen=True)
class Setup:
    """What a part needs besides its documents to make its share of a problem.

    Attributes
    ----------
    key : str
        The problem's name: a part may serve several.
    loss : Loss
    normalize : str
    relabel : callable, optional
        Applied to the labels first, such as a ranker's margins.
    levels : array, optional
        The distinct labels of all parts together.
    total : float, optional
        S of the objective, over all parts; None until it is known.
    ramps : RampColumns, optional
        The columns of curves, with their knots; None for the features themselves.
    """

    key: str
    loss: Loss[Any]
    normalize: str = "query"
    relabel: Callable[[Labels], Labels] | None = None
    levels: FloatArray | None = None
    total: float | None = None
    ramps: RampColumns | None = None


@dataclass(frozen=True)
class Request:
    """What all parts are asked.

    Attributes
    ----------
    setup : Setup
        The problem.
    w : array
        The weights.
    features : array or None
        The working set; None for all features.
    what, arguments : str, tuple
        Which answer, and what else it depends on.
    """

    setup: Setup
    w: FloatArray
    features: IntArray | None
    what: str
    arguments: tuple[Any, ...] = ()


class Part:
    """Some documents of whole queries, and what was computed for the last requests.

    Parameters
    ----------
    data : RankingData
    gain_weight : array, optional
        In grouped order.
    """

    most_problems = 4

    def __init__(self, data: RankingData, gain_weight: FloatArray | None = None) -> None:
        self.data = data
        self.gain_weight = gain_weight
        self._known: dict[str, _Known] = {}
        self._shares: tuple[str, FloatArray, float] = "", np.zeros(0), 0.0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without what is known: another place finds it out again."""
        return Part, (self.data, self.gain_weight)

    def __sizeof__(self) -> int:
        X = self.data.X
        return int(X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes)

    def labels(self, setup: Setup) -> Labels:
        """Return the labels as a problem sees them."""
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
        return labels if setup.relabel is None else setup.relabel(labels)

    def shares(self, setup: Setup, labels: Labels) -> tuple[FloatArray, float]:
        """Return each query's share of the objective, and the part's summand of S."""
        key, shares, total = self._shares
        if key != setup.key:
            shares, total = query_shares(setup.loss, labels)
            self._shares = setup.key, shares, total
        return shares, total

    def total(self, setup: Setup) -> float:
        """Return this part's summand of S."""
        return self.shares(setup, self.labels(setup))[1]

    @cached_property
    def design(self) -> Design:
        """X as products need it, shared by all problems."""
        return make_design(self.data.X, None, self.data.query_ptr)

    def columns(self, setup: Setup) -> Design:
        """Return what a problem multiplies: X, or ramps of its features."""
        if setup.ramps is None:
            return self.design
        return ramp_design(self.data.X, setup.ramps, SerialExecutor())

    def answer(self, request: Request) -> Share:
        """Return this part's share of an answer."""
        key, known = request.setup.key, self._known
        with self._lock, single_threaded_blas(), np.errstate(all="ignore"):
            here = known.pop(key, None) or _Known(self, request.setup)
            while len(known) >= self.most_problems:
                del known[next(iter(known))]
            known[key] = here
            if here.problem is None:
                return _NOTHING[request.what](request, here.n_features)
            here.go_to(request)
            return _ANSWERS[request.what](here.problem, *request.arguments)


class _Known:
    """One problem of a part, at the weights of the last request."""

    def __init__(self, part: Part, setup: Setup) -> None:
        assert setup.total is not None
        labels = part.labels(setup)
        shares, total = part.shares(setup, labels)
        self.problem: MemoryProblem | None = None
        self.n_features = part.data.n_features if setup.ramps is None else setup.ramps.n_columns
        if total > 0.0:  # or nothing here takes part
            scaled = replace(labels, normalize="none", query_weight=shares / setup.total)
            plan = setup.loss.prepare(scaled)
            self.problem = MemoryProblem(part.columns(setup), setup.loss, plan)
        self.w: FloatArray | None = None
        self.features: IntArray | None = None

    def go_to(self, request: Request) -> None:
        """Move the problem to the weights and the working set of a request."""
        assert self.problem is not None
        problem, features = self.problem, request.features
        same_set = _equal(features, self.features)
        if not same_set and features is not None:
            problem.focus(features)
        if not same_set or not _equal(request.w, self.w):
            (problem.at if features is None else problem.move_to)(request.w)
        if request.what in _IN_SET:
            problem.block  # noqa: B018  (answers in all features are by their block, too)
        self.w, self.features = request.w, features


def _equal(a: AnyArray | None, b: AnyArray | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _point(problem: MemoryProblem) -> Share:
    g = problem.point.g
    return problem.point.value, float(g @ g), problem.gradient()


def _norms(problem: MemoryProblem) -> Share:
    return problem.design.column_norms**2, problem.design.summed_norms**2


def _hessian(problem: MemoryProblem, exact: bool, thin: int | None) -> Share:
    hessian = problem.hessian(problem.block, problem.point.u, exact=exact, thin=thin)
    sampled, exact_diagonal = problem.sampled(thin)
    upper = hessian[np.triu_indices(len(hessian))]  # symmetric: half of it travels
    return upper, float(sampled), float(not exact_diagonal)


_ANSWERS: Mapping[str, Callable[..., Share]] = {
    "point": _point,
    "norms": _norms,
    "dual": lambda problem, a: (problem.dual(a),),
    "focused": lambda problem: (problem.point.value, problem.focused_gradient()),
    "hessian": _hessian,
    "product": lambda problem, v: (problem.product(v),),
    "bend": lambda problem, v: (problem.hessians.bend(problem.block, problem.point.u, v),),
}
_IN_SET = ("focused", "hessian", "product", "bend")


def _no_hessian(request: Request, n_features: int) -> Share:
    width = _width(request, n_features)
    return np.zeros(width * (width + 1) // 2), 0.0, 0.0


def _width(request: Request, n_features: int) -> int:
    return n_features if request.features is None else len(request.features)


_NOTHING: Mapping[str, Callable[[Request, int], Share]] = {
    "point": lambda _, n: (0.0, 0.0, np.zeros(n)),
    "norms": lambda _, n: (np.zeros(n), np.zeros(n)),
    "dual": lambda _, n: (0.0,),
    "focused": lambda request, n: (0.0, np.zeros(_width(request, n))),
    "hessian": _no_hessian,
    "product": lambda request, n: (np.zeros(_width(request, n)),),
    "bend": lambda _, n: (0.0,),
}
"""The share of a part in which nothing takes part."""
