"""A part of a problem: documents of whole queries in one place, and what is asked of them.

A *question* carries weights and steps, an *answer* the part's share of a value, a gradient or a
Hessian: only model-sized things travel. What has one entry per document stays with the part.

**Nothing is lost with a part's memory.** A point is the weights that ``at`` was given and the moves
since then. A part keeps its scores from one question to the next, but only to save time: one that
lost them says so, is told the whole trail, and repeats it to the same bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.designs.base import Design, make_design
from leanrank.designs.ramps import RampColumns, ramp_design
from leanrank.execution import SerialExecutor, cached_property, single_threaded_blas
from leanrank.losses.base import Labels, Loss, query_shares
from leanrank.problem.memory import MemoryProblem

Share: TypeAlias = tuple[Any, ...]
"""What one part adds to a sum: numbers and arrays, added one by one."""


Kept: TypeAlias = Callable[["Part"], BoolArray]
"""Returns which queries of a part count."""


class Lost(Exception):  # noqa: N818  (a state, and no error: the question is asked again)
    """A part does not know the point of a question: it must be told the whole trail."""


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
    kept : callable, optional
        Returns for a part which of its queries count; None for all.
    ramps : RampColumns, optional
        The columns of curves, with their knots; None for the features themselves.
    """

    key: str
    loss: Loss[Any]
    normalize: str = "query"
    relabel: Callable[[Labels], Labels] | None = None
    levels: FloatArray | None = None
    total: float | None = None
    kept: Kept | None = None
    ramps: RampColumns | None = None


@dataclass(frozen=True)
class Move:
    """A step of a working set, so many times; ``trial`` is the number of the try before it."""

    features: IntArray | None
    step: FloatArray
    t: float
    trial: int


@dataclass(frozen=True)
class Question:
    """What all parts are asked, and where.

    Attributes
    ----------
    key : str
        Of the problem.
    setup : Setup or None
        None if the part should know it.
    trail : int
        Counts the calls of ``at``.
    start : array or None
        The weights of ``at``; None if the part should know them.
    skipped : int
        Moves since ``start`` that the part should know.
    moves : tuple of Move
        Those after them.
    features : array or None
        The working set; None for all features.
    what, arguments : str, tuple
        Which answer, and what it depends on.
    """

    key: str
    setup: Setup | None
    trail: int
    start: FloatArray | None
    skipped: int
    moves: tuple[Move, ...]
    features: IntArray | None
    what: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class InGroup:
    """The queries of one group of a part, or all others."""

    group: int
    others: bool = False

    def __call__(self, part: Part) -> BoolArray:
        """Return which queries are meant."""
        assert part.groups is not None, "the parts have no groups"
        inside: BoolArray = (part.groups == self.group) != self.others
        return inside


class Part:
    """Some documents of whole queries, and what is known of them at the latest point.

    Parameters
    ----------
    data : RankingData
    gain_weight : array, optional
        In grouped order.
    groups : array of int, optional
        The group of each query, such as its fold; see ``InGroup``.
    """

    most_problems = 8

    def __init__(
        self,
        data: RankingData,
        gain_weight: FloatArray | None = None,
        groups: IntArray | None = None,
    ) -> None:
        self.data = data
        self.gain_weight = gain_weight
        self.groups = groups
        self._forget()

    def _forget(self) -> None:
        self._desks: dict[str, _Desk] = {}
        self._shares: tuple[str, FloatArray, float] = "", np.zeros(0), 0.0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without what is known: another place finds it out again."""
        return Part, (self.data, self.gain_weight, self.groups)

    def __sizeof__(self) -> int:
        X = self.data.X
        return int(X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes)

    def labels(self, setup: Setup) -> Labels:
        """Return the labels as a problem sees them."""
        data = self.data
        weight = data.query_weight
        if setup.kept is not None:
            whole = np.ones(data.n_queries) if weight is None else weight
            weight = whole * setup.kept(self)
        labels = Labels(
            y=data.y,
            query_ptr=data.query_ptr,
            sample_weight=data.sample_weight,
            query_weight=weight,
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

    def answer(self, question: Question) -> Share:
        """Return this part's share of an answer; raises Lost if it does not know the point."""
        key = question.key
        with self._lock, single_threaded_blas(), np.errstate(all="ignore"):
            desk = self._desks.get(key)
            if desk is None:
                if question.setup is None:
                    raise Lost
                while len(self._desks) >= self.most_problems:
                    del self._desks[next(iter(self._desks))]
                desk = self._desks[key] = _Desk(self, question.setup)
            return desk.answer(question)

    def release(self, key: str) -> None:
        """Forget a problem."""
        self._desks.pop(key, None)


class _Desk:
    """One problem of a part: its documents, and the point where it is."""

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
        self.trail, self.done = -1, 0
        self.features: IntArray | None = None
        self.trial = -1
        self.step = np.zeros(0)

    def answer(self, question: Question) -> Share:
        idle = _IDLE[question.what]
        if self.problem is None:
            return idle(question, self.n_features)
        self._go(question)
        self._focus(question.features)
        return _ANSWERS[question.what](self, self.problem, *question.arguments)

    def _go(self, question: Question) -> None:
        """Move to the point of a question."""
        assert self.problem is not None
        known = question.trail == self.trail and self.done >= question.skipped
        ahead = self.done > question.skipped + len(question.moves)
        if not known or ahead:
            if question.start is None:
                raise Lost
            self.problem.at(question.start)
            self.trail, self.done, self.trial = question.trail, 0, -1
            self.features = None
        for move in question.moves[self.done - question.skipped :]:
            if move.trial != self.trial:
                self._focus(move.features)
                self.try_step(move.step, move.t, move.trial)
            self.problem.accept()
            self.done, self.trial = self.done + 1, -1

    def _focus(self, features: IntArray | None) -> None:
        assert self.problem is not None
        if features is None or (
            self.features is not None and np.array_equal(features, self.features)
        ):
            return
        self.problem.focus(features)
        self.features = features

    def try_step(self, step: FloatArray, t: float, trial: int) -> float:
        assert self.problem is not None
        if not np.array_equal(step, self.step):
            self.step = step  # the problem knows a step that it has seen by its identity
        self.trial = trial
        return self.problem.try_step(self.step, t)

    def tried(self, problem: MemoryProblem, step: FloatArray, t: float, trial: int) -> Share:
        return self.try_step(step, t, trial), problem.tried_gradient()

    def bend(self, problem: MemoryProblem, step: FloatArray, t: float, trial: int) -> Share:
        if trial != self.trial:
            self.try_step(step, t, trial)
        return (problem.bend(),)


def _point(_: _Desk, problem: MemoryProblem) -> Share:
    g = problem.point.g
    return problem.point.value, float(g @ g), problem.gradient()


def _norms(_: _Desk, problem: MemoryProblem) -> Share:
    return problem.design.column_norms**2, problem.design.summed_norms**2


def _hessian(_: _Desk, problem: MemoryProblem, exact: bool, thin: int | None) -> Share:
    hessian = problem.hessian(problem.block, problem.point.u, exact=exact, thin=thin)
    sampled, exact_diagonal = problem.sampled(thin)
    upper = hessian[np.triu_indices(len(hessian))]  # symmetric: half of it travels
    return upper, float(sampled), float(not exact_diagonal)


_ANSWERS: Mapping[str, Callable[..., Share]] = {
    "point": _point,
    "norms": _norms,
    "dual": lambda _, problem, a: (problem.dual(a),),
    "zero": lambda _, problem: (problem.value_at_zero,),
    "focused": lambda _, problem: (problem.focused_gradient(),),
    "hessian": _hessian,
    "product": lambda _, problem, v: (problem.product(v),),
    "try": _Desk.tried,
    "bend": _Desk.bend,
}


def _width(question: Question, n_features: int) -> int:
    return n_features if question.features is None else len(question.features)


def _no_hessian(question: Question, n_features: int) -> Share:
    width = _width(question, n_features)
    return np.zeros(width * (width + 1) // 2), 0.0, 0.0


_IDLE: Mapping[str, Callable[[Question, int], Share]] = {  # the share of nothing
    "point": lambda _, n: (0.0, 0.0, np.zeros(n)),
    "norms": lambda _, n: (np.zeros(n), np.zeros(n)),
    "dual": lambda _, n: (0.0,),
    "zero": lambda _, n: (0.0,),
    "focused": lambda question, n: (np.zeros(_width(question, n)),),
    "hessian": _no_hessian,
    "product": lambda question, n: (np.zeros(_width(question, n)),),
    "try": lambda question, n: (0.0, np.zeros(_width(question, n))),
    "bend": lambda _, n: (0.0,),
}
