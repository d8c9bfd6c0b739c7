"""The problem as an ordered sum of shards, each with documents of its own.

A shard is whole queries in one place: a process, a worker of a cluster. The problem sends all of
them the same request and adds up their answers.

**Same bits wherever the shards are.** Answers are added along a binary tree over the numbers of the
shards. Whoever holds neighbouring shards adds them up before sending, and the sum is the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self, TypeAlias
from uuid import uuid4

import numpy as np

from leanrank._typing import BoolArray, FloatArray, IntArray, Matrix
from leanrank.data.matrices import stacked
from leanrank.designs.ramp_columns import RampColumns, sample_step
from leanrank.designs.surfaces import SurfaceColumns
from leanrank.errors import NoLevelsError
from leanrank.execution import cached_property, row_blocks
from leanrank.losses.base import Labels, Loss
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem, QuadraticModel
from leanrank.problem.quadratic_models import GramModel, ProductModel
from leanrank.problem.shard import Setup, Shard, Sums

Node: TypeAlias = tuple[int, int]
"""The sum of shards ``[i·2ᵏ, (i + 1)·2ᵏ)`` is node (k, i) of the tree."""

LARGEST_GRAM = 2_048
"""Features of a working set up to which shards send Hessians: 16 MB, since half of one travels."""


def add_along_tree(nodes: Mapping[Node, Sums | None], n_shards: int) -> dict[Node, Sums | None]:
    """Add up neighbouring nodes that are present; with all shards, only the root is left.

    None adds nothing.

    >>> add_along_tree({(0, 0): (1.0,), (0, 1): (2.0,), (0, 2): (3.0,)}, 3)
    {(2, 0): (6.0,)}
    >>> add_along_tree({(0, 1): (2.0,), (0, 2): (3.0,)}, 3)
    {(0, 1): (2.0,), (1, 1): (3.0,)}
    """
    left = dict(nodes)
    level, width = 0, n_shards
    while width > 1:
        for at in range(0, width, 2):
            pair = (level, at), (level, at + 1)
            if pair[0] in left and at + 1 == width:
                left[level + 1, at // 2] = left.pop(pair[0])
            elif pair[0] in left and pair[1] in left:
                first, second = left.pop(pair[0]), left.pop(pair[1])
                left[level + 1, at // 2] = _added(first, second)
        level, width = level + 1, (width + 1) // 2
    return left


def _added(first: Sums | None, second: Sums | None) -> Sums | None:
    if first is None or second is None:
        return second if first is None else first
    return tuple(a + b for a, b in zip(first, second, strict=True))


class Shards(ABC):
    """Shards in their places, with the means to evaluate sums over them.

    Attributes
    ----------
    n_shards, n_rows, n_features : int
    levels : array or None
        The distinct labels of all shards, unless they are very many.
    ramps : RampColumns, SurfaceColumns or None
        The columns of curves and surfaces.
    """

    n_shards: int
    n_rows: int
    n_features: int
    levels: FloatArray | None
    ramps: RampColumns | SurfaceColumns | None = None

    def in_ramps(self, find: Callable[[Matrix, int], RampColumns]) -> Self:
        """Return the same shards with curves for features.

        Knots are those of the same documents in one place, for which each shard sends its share of
        the sample that ``RampColumns.at_quantiles`` takes.

        Parameters
        ----------
        find : callable
            Returns the ramps from the sample and the number of documents.
        """
        ramps = find(*self.sample())
        return self.with_columns(replace(ramps, gap=np.any(self.map(gaps), axis=0)))

    def with_columns(self, columns: RampColumns | SurfaceColumns) -> Self:
        """Return the same shards with columns of curves and surfaces."""
        some = copy(self)
        some.ramps, some.n_features = columns, len(columns.feature)
        return some

    def sample(self) -> tuple[Matrix, int]:
        """Return evenly spaced documents, and how many there are."""
        sizes = self.map(_n_rows)
        step = sample_step(sum(sizes))
        first = [int(-start % step) for start in np.cumsum([0, *sizes[:-1]])]
        return stacked(self.map(_sample, step, each=first)), sum(sizes)

    @abstractmethod
    def map(
        self, function: Callable[..., Any], *arguments: Any, each: Sequence[Any] | None = None
    ) -> list[Any]:
        """Return ``function(shard, *arguments)`` of all shards, in order.

        With ``each``, a shard's own entry of it comes before the arguments.
        """

    @abstractmethod
    def sums(self, *request: Any) -> Sums:
        """Return the sum over all shards of what ``Shard.sums`` returns."""


def _n_rows(shard: Shard) -> int:
    return len(shard.data)


def _sample(shard: Shard, first: int, step: int) -> Matrix:
    return shard.data.X[np.arange(first, len(shard.data), step)]


def gaps(shard: Shard) -> BoolArray:
    """Return which features are missing in some document."""
    X = shard.data.X
    if isinstance(X, np.ndarray):
        return np.any([np.isnan(X[a:b]).any(axis=0) for a, b in row_blocks(len(X))], axis=0)
    return np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1]) > 0


class ShardedProblem(Problem):
    """Minimise over w a loss whose documents are in several places.

    Parameters
    ----------
    shards : Shards
    loss : Loss
    normalize, relabel
        As in ``Setup``.
    largest_gram : int
        Features of a working set up to which its Hessian is formed; beyond, a step asks the shards
        for one product after the other.
    """

    def __init__(
        self,
        shards: Shards,
        loss: Loss[Any],
        normalize: str = "query",
        relabel: Callable[[Labels], Labels] | None = None,
        largest_gram: int = LARGEST_GRAM,
    ) -> None:
        self.shards = shards
        self.loss = loss
        self.n_rows, self.n_features = shards.n_rows, shards.n_features
        self.largest_gram = largest_gram
        key, levels, ramps = uuid4().hex, shards.levels, shards.ramps
        setup = Setup(key, loss, normalize, relabel, levels, ramps=ramps)
        summands = {(0, at): (each,) for at, each in enumerate(shards.map(Shard.total, setup))}
        ((total,),) = add_along_tree(summands, shards.n_shards).values()  # type: ignore[misc]
        if not total > 0.0:
            raise NoLevelsError
        self.setup = replace(setup, total=1.0 if normalize == "none" else total)
        self._w = np.zeros(self.n_features)
        self._features: IntArray | None = None
        self._tried: tuple[FloatArray, FloatArray, float, FloatArray] | None = None
        self._move_to(self._w, None, None)

    def summed(self, want: Any, *more: Any, w: FloatArray | None = None) -> Sums:
        """Return sums over all shards."""
        at = self._w if w is None else w
        return self.shards.sums(self.setup, want, at, self._features, *more)

    def _move_to(self, w: FloatArray, value: float | None, focused: FloatArray | None) -> None:
        """Set the point, and drop the cached values of the last one."""
        self._w, self._value, self._focused = w, value, focused
        self._gradient: FloatArray | None = None
        self._squares = 0.0  # of the score gradient
        self._duals: dict[float, float] = {}

    def _know_point(self) -> FloatArray:
        """Return the gradient; the value and the size of the score gradient are cached with it."""
        if self._gradient is None:
            self._value, self._squares, self._gradient = self.summed("point")
        return self._gradient

    # the point

    def at(self, w: FloatArray) -> float:
        """Move to weights w; return the loss there."""
        self._features = self._tried = None
        self._move_to(w.copy(), None, None)
        self._know_point()  # solvers need the gradient next, and a second trip costs more
        assert self._value is not None
        if not w.any():
            self.value_at_zero = self._value
        return self._value

    def gradient(self) -> FloatArray:
        """Return the loss's gradient in all weights."""
        return self._know_point().copy()

    def dual(self, a: float) -> float:
        """Return the dual value at the feasible point that a·g defines."""
        if a not in self._duals:
            (self._duals[a],) = self.summed("dual", a)
        return self._duals[a]

    @cached_property
    def value_at_zero(self) -> float:
        """The loss of a model without weights."""
        return float(self.summed("point", w=np.zeros(self.n_features))[0])

    @cached_property
    def norms(self) -> tuple[FloatArray, FloatArray]:
        """Length of each column, and of the numbers that its products add up."""
        columns, summed = self.summed("norms")
        return np.sqrt(columns), np.sqrt(summed)

    @property
    def score_slope(self) -> float:
        """Length of the score gradient."""
        self._know_point()
        return float(np.sqrt(self._squares))

    # the working set

    def focus(self, features: IntArray) -> None:
        """Choose the features of the working set; the shards learn it with the next request."""
        self._features = features
        self._focused = None

    def focused_gradient(self) -> FloatArray:
        """Return the gradient in the weights of the working set."""
        if self._gradient is not None:
            return self._gradient[slice(None) if self._features is None else self._features].copy()
        if self._focused is None:
            _, self._focused = self.summed("focused")
        return self._focused.copy()

    def quadratic(self, penalty: Penalty, *, thin: int | None = None) -> QuadraticModel:
        """Model the loss in the working set: by a sum of Hessians, or by products if it is large.

        A product is a trip, so that a Hessian pays as long as it is small enough to travel.
        """
        del penalty
        formed = self.loss.offers("curvature") or self.loss.offers("products")
        if formed and self._n_focused <= self.largest_gram:
            hessian, sampled, exact_diagonal = self._hessian(False, thin)
            return GramModel(hessian, sampled, exact_diagonal)
        return ProductModel(self._product)

    @property
    def _n_focused(self) -> int:
        return self.n_features if self._features is None else len(self._features)

    def focused_hessian(self) -> FloatArray:
        """Return the exact Hessian in the weights of the working set."""
        return self._hessian(True, None)[0]

    def _hessian(self, exact: bool, thin: int | None) -> tuple[FloatArray, bool, bool]:
        upper, sampled, rough = self.summed(
            "hessian", exact, None if thin is None else thin / self.n_rows
        )
        hessian = np.zeros((self._n_focused, self._n_focused))
        hessian[np.triu_indices(len(hessian))] = upper
        return hessian + np.triu(hessian, 1).T, sampled > 0, rough == 0

    def _product(self, v: FloatArray) -> FloatArray:
        return np.asarray(self.summed("product", v)[0])

    # a line search

    def try_step(self, step: FloatArray, t: float) -> float:
        """Return the loss after t times a step, and keep the gradient there in case it is taken."""
        w = self._w.copy()
        w[slice(None) if self._features is None else self._features] += t * step
        value, focused = self.summed("focused", w=w)
        self._tried = w, step, float(value), focused
        return float(value)

    def directional_derivative(self) -> float:
        """Return the derivative of the loss along the step where ``try_step`` looked last."""
        assert self._tried is not None, "try_step() comes first"
        _, step, _, focused = self._tried
        return float(focused @ step)

    def curvature_along_step(self) -> float:
        """Return the second derivative there; 0 where the loss has none."""
        assert self._tried is not None, "try_step() comes first"
        if not self.loss.smooth:
            return 0.0
        w, step, _, _ = self._tried
        return float(step @ self.summed("product", step, w=w)[0])

    def accept(self) -> None:
        """Move to where ``try_step`` looked last."""
        assert self._tried is not None, "try_step() comes first"
        w, _, value, focused = self._tried
        self._tried = None
        self._move_to(w, value, focused)
