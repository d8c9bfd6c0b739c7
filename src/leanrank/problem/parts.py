"""The problem as an ordered sum of parts, each with documents of its own.

A part is whole queries in one place: a process, a worker of a cluster. Only model-sized things
travel: a *question* carries weights and steps, an *answer* the part's share of a value, a gradient
or a Hessian. What has one entry per document stays with the part.

**Same bits wherever the parts are.** Shares are added along a binary tree over the numbers of the
parts. Whoever holds neighbouring parts adds them up before sending, and the sum is the same.

**Nothing is lost with a part's memory.** A point is the weights that ``at`` was given and the moves
since then. A part keeps its scores from one question to the next, but only to save time: one that
lost them says so, is told the whole trail, and repeats it to the same bits.
"""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self, TypeAlias
from uuid import uuid4

import numpy as np

from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.designs.base import Design, make_design
from leanrank.errors import NoLevelsError
from leanrank.execution import single_threaded_blas
from leanrank.losses.base import Labels, Loss, query_shares
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem, QuadraticModel, checked_scale
from leanrank.problem.gram_model import GramModel
from leanrank.problem.memory import ROUNDING, MemoryProblem
from leanrank.problem.product_model import ProductModel

Share: TypeAlias = tuple[Any, ...]
"""What one part adds to a sum: numbers and arrays, added one by one."""

Node: TypeAlias = tuple[int, int]
"""The sum of parts ``[i·2ᵏ, (i + 1)·2ᵏ)`` is node (k, i) of the tree."""

LARGEST_GRAM = 2_048
"""Features of a working set up to which parts send Hessians: 16 MB, since half of one travels."""


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
        Returns from a part's query ids which of them take part; None for all.
    """

    key: str
    loss: Loss[Any]
    normalize: str = "query"
    relabel: Callable[[Labels], Labels] | None = None
    levels: FloatArray | None = None
    total: float | None = None
    kept: Callable[[Any], BoolArray] | None = None


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
    setup : Setup
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

    setup: Setup
    trail: int
    start: FloatArray | None
    skipped: int
    moves: tuple[Move, ...]
    features: IntArray | None
    what: str
    arguments: tuple[Any, ...] = ()


class Part:
    """Some documents of whole queries, and what is known of them at the latest point.

    Parameters
    ----------
    data : RankingData
    gain_weight : array, optional
        In grouped order.
    """

    most_problems = 8

    def __init__(self, data: RankingData, gain_weight: FloatArray | None = None) -> None:
        self.data = data
        self.gain_weight = gain_weight
        self._forget()

    def _forget(self) -> None:
        self._desks: dict[str, _Desk] = {}
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
        weight = data.query_weight
        if setup.kept is not None:
            whole = np.ones(data.n_queries) if weight is None else weight
            weight = whole * setup.kept(data.query_ids)
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

    def answer(self, question: Question) -> Share:
        """Return this part's share of an answer; raises Lost if it does not know the point."""
        key = question.setup.key
        with self._lock, single_threaded_blas(), np.errstate(all="ignore"):
            desk = self._desks.get(key)
            if desk is None:
                if question.start is None:
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
        self.n_features = part.data.n_features
        if total > 0.0:  # or nothing here takes part
            scaled = replace(labels, normalize="none", query_weight=shares / setup.total)
            plan = setup.loss.prepare(scaled)
            self.problem = MemoryProblem(part.design, setup.loss, plan)
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


def _hessian(_: _Desk, problem: MemoryProblem, exact: bool, dropped: float, thin: Any) -> Share:
    hessian = problem.hessian(
        problem.block, problem.point.u, exact=exact, dropped=dropped, thin=thin
    )
    return (hessian[np.triu_indices(len(hessian))],)  # symmetric: half of it travels


_ANSWERS: Mapping[str, Callable[..., Share]] = {
    "point": _point,
    "norms": _norms,
    "dual": lambda _, problem, a: (problem.dual(a),),
    "zero": lambda _, problem: (problem.value_at_zero,),
    "focused": lambda _, problem: (problem.focused_gradient(),),
    "hessian": _hessian,
    "product": lambda _, problem, v: (problem.product(problem.block, problem.point.u, v),),
    "try": _Desk.tried,
    "bend": _Desk.bend,
}


def _width(question: Question, n_features: int) -> int:
    return n_features if question.features is None else len(question.features)


def _no_hessian(question: Question, n_features: int) -> Share:
    width = _width(question, n_features)
    return (np.zeros(width * (width + 1) // 2),)


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


def add_along_tree(known: Mapping[Node, Share], n_parts: int) -> dict[Node, Share]:
    """Add neighbours up as far as they are known; with all parts, only the root is left.

    >>> add_along_tree({(0, 0): (1.0,), (0, 1): (2.0,), (0, 2): (3.0,)}, 3)
    {(2, 0): (6.0,)}
    >>> add_along_tree({(0, 1): (2.0,), (0, 2): (3.0,)}, 3)
    {(0, 1): (2.0,), (1, 1): (3.0,)}
    """
    left = dict(known)
    level, width = 0, n_parts
    while width > 1:
        for at in range(0, width, 2):
            pair = (level, at), (level, at + 1)
            if pair[0] in left and at + 1 == width:
                left[level + 1, at // 2] = left.pop(pair[0])
            elif pair[0] in left and pair[1] in left:
                first, second = left.pop(pair[0]), left.pop(pair[1])
                left[level + 1, at // 2] = tuple(a + b for a, b in zip(first, second, strict=True))
        level, width = level + 1, (width + 1) // 2
    return left


class Parts(ABC):
    """Where the parts are, and how they are asked.

    Attributes
    ----------
    n_parts, n_rows, n_features : int
    levels : array or None
        The distinct labels of all parts, unless they are very many.
    kept : callable or None
        As in ``Setup``: which queries take part.
    """

    n_parts: int
    n_rows: int
    n_features: int
    levels: FloatArray | None
    kept: Callable[[Any], BoolArray] | None = None

    def only(self, kept: Callable[[Any], BoolArray]) -> Self:
        """Return the same parts, of which only some queries count."""
        some = copy(self)
        some.kept = kept
        return some

    @abstractmethod
    def ask(self, question: Question, whole: Callable[[], Question]) -> Share:
        """Return the sum of all parts' answers; ``whole`` is for parts that lost their point."""

    @abstractmethod
    def total(self, setup: Setup) -> float:
        """Return S of an objective."""

    @abstractmethod
    def release(self, key: str) -> None:
        """Let the parts forget a problem."""


class LocalParts(Parts):
    """Parts in this process, one after the other."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self.parts = list(parts)
        self.n_parts = len(self.parts)
        self.n_rows = sum(len(part.data) for part in self.parts)
        self.n_features = self.parts[0].data.n_features
        self.levels = np.unique(np.concatenate([part.data.levels for part in self.parts]))

    def ask(self, question: Question, whole: Callable[[], Question]) -> Share:
        """Return the sum of all parts' answers."""
        answers: dict[Node, Share] = {}
        for at, part in enumerate(self.parts):
            try:
                answers[0, at] = part.answer(question)
            except Lost:
                answers[0, at] = part.answer(whole())
        (share,) = add_along_tree(answers, self.n_parts).values()
        return share

    def total(self, setup: Setup) -> float:
        """Return S of an objective."""
        summands = {(0, at): (part.total(setup),) for at, part in enumerate(self.parts)}
        ((total,),) = add_along_tree(summands, self.n_parts).values()
        return float(total)

    def release(self, key: str) -> None:
        """Let the parts forget a problem."""
        for part in self.parts:
            part.release(key)


class PartedProblem(Problem):
    """Minimise over w a loss whose documents are in several places.

    Parameters
    ----------
    parts : Parts
    loss : Loss
    normalize, relabel
        As in ``Setup``.
    largest_gram : int
        Features of a working set up to which its Hessian is formed; beyond, a step asks the parts
        for one product after the other.
    """

    def __init__(
        self,
        parts: Parts,
        loss: Loss[Any],
        normalize: str = "query",
        relabel: Callable[[Labels], Labels] | None = None,
        largest_gram: int = LARGEST_GRAM,
    ) -> None:
        self.parts = parts
        self.loss = loss
        self.n_rows, self.n_features = parts.n_rows, parts.n_features
        self.largest_gram = largest_gram
        setup = Setup(uuid4().hex, loss, normalize, relabel, parts.levels, None, parts.kept)
        total = parts.total(setup)
        if not total > 0.0:
            raise NoLevelsError
        self.setup = replace(setup, total=1.0 if normalize == "none" else total)
        self._trails, self._trials = itertools.count(), itertools.count()
        self._trail = -1
        self._start: FloatArray | None = None
        self._moves: list[Move] = []
        self._told = 0  # moves that the parts have been told
        self._features: IntArray | None = None
        self._tried: tuple[Move, float, FloatArray] | None = None
        self._move_to(None, None)

    def __del__(self) -> None:
        """Let the parts forget."""
        if hasattr(self, "setup"):
            self.parts.release(self.setup.key)

    # questions

    def _ask(self, what: str, *arguments: Any, fresh: bool = False) -> Share:
        question = Question(
            self.setup,
            self._trail,
            self._start if fresh else None,
            0 if fresh else self._told,
            tuple(self._moves[self._told :]),
            self._features,
            what,
            arguments,
        )
        whole = partial(replace, question, start=self._start, skipped=0, moves=tuple(self._moves))
        share = self.parts.ask(question, whole)
        self._told = len(self._moves)
        return share

    def _move_to(self, value: float | None, focused: FloatArray | None) -> None:
        """Forget what was known of the last point."""
        self._value = value
        self._gradient: FloatArray | None = None
        self._squares = 0.0  # of the score gradient
        self._focused = focused
        self._duals: dict[float, float] = {}

    def _know_point(self, *, fresh: bool = False) -> FloatArray:
        """Return the gradient, and know the value and the size of the score gradient."""
        if self._gradient is None:
            self._value, self._squares, self._gradient = self._ask("point", fresh=fresh)
        return self._gradient

    # the point

    def at(self, w: FloatArray) -> float:
        """Move to weights w; return the loss there."""
        self._trail, self._start = next(self._trails), w.copy()
        self._moves, self._told = [], 0
        self._features = self._tried = None
        self._move_to(None, None)
        self._know_point(fresh=True)  # the gradient is asked for next, and a trip costs more
        assert self._value is not None
        if not w.any():
            self.value_at_zero = self._value
        return self._value

    def gradient(
        self, skip: Callable[[FloatArray, FloatArray], BoolArray] | None = None
    ) -> FloatArray:
        """Return the gradient; all of it, since asking first what may be skipped is a trip."""
        del skip
        return self._know_point().copy()

    def dual(self, a: float) -> float:
        """Return the dual value at the feasible point that a·g defines."""
        if a not in self._duals:
            (self._duals[a],) = self._ask("dual", a)
        return self._duals[a]

    @cached_property
    def value_at_zero(self) -> float:
        """The loss of a model without weights."""
        (value,) = self._ask("zero")
        return float(value)

    @cached_property
    def _norms(self) -> tuple[FloatArray, FloatArray]:
        columns, summed = self._ask("norms")
        return np.sqrt(columns), np.sqrt(summed)

    def rounding(self, w: FloatArray, value: float) -> float:
        """Estimate the rounding in a value and the gradient: what their sums add up, times ε."""
        self._know_point()
        terms = float(np.abs(w) @ self._norms[1]) * float(np.sqrt(self._squares))
        return ROUNDING * (abs(value) + terms)

    def gradient_scale(self) -> FloatArray:
        """Return the most that each feature's gradient can be at this size of score gradient."""
        self._know_point()
        return checked_scale(self._norms[0], float(np.sqrt(self._squares)))

    # the working set

    def focus(self, features: IntArray) -> None:
        """Choose the features of the working set; the parts learn it with the next question."""
        self._features = features
        self._focused = None

    def focused_gradient(self) -> FloatArray:
        """Return the gradient in the weights of the working set."""
        if self._gradient is not None:
            return self._gradient[slice(None) if self._features is None else self._features].copy()
        if self._focused is None:
            (self._focused,) = self._ask("focused")
        return self._focused.copy()

    def quadratic(
        self, penalty: Penalty, *, dropped: float = 0.0, thin: int | None = None
    ) -> QuadraticModel:
        """Model the loss in the working set: by a sum of Hessians, or by products if it is large.

        A product is a trip, so that a Hessian pays as long as it is small enough to travel.
        """
        del penalty
        formed = self.loss.offers("curvature") or self.loss.offers("products")
        if formed and self._n_focused <= self.largest_gram:
            return GramModel(self._hessian(False, dropped, thin))
        return ProductModel(self._product)

    @property
    def _n_focused(self) -> int:
        return self.n_features if self._features is None else len(self._features)

    def focused_hessian(self) -> FloatArray:
        """Return the exact Hessian in the weights of the working set."""
        return self._hessian(True, 0.0, None)

    def _hessian(self, exact: bool, dropped: float, thin: int | None) -> FloatArray:
        (upper,) = self._ask("hessian", exact, dropped, thin)
        hessian = np.zeros((self._n_focused, self._n_focused))
        hessian[np.triu_indices(len(hessian))] = upper
        return hessian + np.triu(hessian, 1).T

    def _product(self, v: FloatArray) -> FloatArray:
        return np.asarray(self._ask("product", v)[0])

    # a line search

    def try_step(self, step: FloatArray, t: float) -> float:
        """Return the loss after t times a step, and keep the gradient there in case it is taken."""
        move = Move(self._features, step.copy(), t, next(self._trials))
        value, focused = self._ask("try", move.step, t, move.trial)
        self._tried = move, float(value), focused
        return float(value)

    def slope(self) -> float:
        """Return the loss's slope along the step where ``try_step`` looked last."""
        assert self._tried is not None, "try_step() comes first"
        return float(self._tried[2] @ self._tried[0].step)

    def bend(self) -> float:
        """Return its curvature there; 0 where the loss has none."""
        assert self._tried is not None, "try_step() comes first"
        if not self.loss.smooth:
            return 0.0
        move = self._tried[0]
        (value,) = self._ask("bend", move.step, move.t, move.trial)
        return float(value)

    def accept(self) -> None:
        """Move to where ``try_step`` looked last."""
        assert self._tried is not None, "try_step() comes first"
        move, value, focused = self._tried
        self._moves.append(move)
        self._tried = None
        self._move_to(value, focused)
