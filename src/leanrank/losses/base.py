"""The base class of losses: sums over queries of functions of scores, levels and weights.

A loss does not know the features. ``prepare`` makes a *plan* from the labels (flat arrays that are
never changed and can be pickled). The plan is evaluated over *ranges of queries* ``[r0, r1)``: a
range reads and writes only the rows of its own queries and returns partial sums, so ranges may run
in any thread or process. A constant added to all scores of a query changes nothing, and the score
gradient of each query adds up to zero.

A loss offers the operations that it defines; a solver rejects a loss that lacks one it needs:

========== ===================================================================================
prepare    labels, queries, weights and offset -> plan
evaluate   value, filling the score gradient g
dual       the dual value at the point that the scaled score gradient a·g defines
dual_at    the same where the value and g are known, if that saves time
curvature  the score Hessian as diag − low rank, into a ``Curvature``
fold       cell sums of atoms times features -> factors L, R with XᵀHX = XᵀDX − (LᵀR + RᵀL)
product    the score Hessian times a vector; by default from two gradients
products   the same for the columns of a matrix at once, where there is no curvature and fold
pair_slope the loss of one pair and its slope, compiled, for solvers that draw pairs
========== ===================================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from leanrank._jit import kernel, kernel_view
from leanrank._typing import AnyArray, FloatArray, IntArray, Part
from leanrank.errors import InputError, NoLevelsError, check_choice
from leanrank.execution import row_blocks

NORMALIZATIONS = ("query", "term", "none")


@dataclass(frozen=True)
class Plan:
    """The part of a prepared data set that every loss needs; subclasses add their own arrays.

    Attributes
    ----------
    query_ptr : array of int64
        Query q owns the rows ``query_ptr[q]:query_ptr[q + 1]``.
    scale : array
        The factor ω_q / (c_q S) of each query's loss; 0 for a query that does not take part.
    offset : array or None
        s in u = Xw − s.
    cell : array of int64
        The cell of each row, such as its level; the cells of a query have consecutive numbers.
    cell_ptr : array of int64
        Query q owns the cells ``cell_ptr[q]:cell_ptr[q + 1]``.
    """

    query_ptr: IntArray
    scale: FloatArray
    offset: FloatArray | None
    cell: IntArray
    cell_ptr: IntArray

    @property
    def n_rows(self) -> int:
        """Number of documents."""
        return int(self.query_ptr[-1])

    def span(self, r0: int, r1: int) -> slice:
        """Return the rows of queries [r0, r1)."""
        return slice(int(self.query_ptr[r0]), int(self.query_ptr[r1]))


P = TypeVar("P", bound=Plan)


class Edges(NamedTuple):
    """Explicit preferences for row ``winner`` over row ``loser`` of one query, with weights."""

    winner: IntArray
    loser: IntArray
    weight: FloatArray

    def take(self, which: IntArray | slice) -> Edges:
        """Return some of the edges."""
        return Edges(self.winner[which], self.loser[which], self.weight[which])


@dataclass(frozen=True)
class Labels:
    """The input of ``Loss.prepare``, with rows in grouped order.

    With ``edges``, a pairwise loss ignores the levels of y. ``levels`` are the distinct labels of
    the whole data set; they are needed if these documents are a part of it.
    """

    y: FloatArray
    query_ptr: IntArray
    sample_weight: FloatArray | None = None
    query_weight: FloatArray | None = None
    gain_weight: FloatArray | None = None
    offset: FloatArray | None = None
    normalize: str = "query"
    edges: Edges | None = None
    levels: FloatArray | None = None

    def __post_init__(self) -> None:
        """Subtract the first offset of each query, which changes no loss, to keep precision.

        ``kernel_view`` avoids that Numba compiles kernels again for read-only arrays.
        """
        for name in ("y", "query_ptr", "sample_weight", "query_weight", "gain_weight"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, kernel_view(getattr(self, name)))
        if self.offset is not None and len(self.offset):
            first = np.minimum(self.query_ptr[:-1], len(self.offset) - 1)
            base = np.repeat(self.offset[first], np.diff(self.query_ptr))
            object.__setattr__(self, "offset", self.offset - base)

    def find_levels(self) -> tuple[FloatArray, IntArray]:
        """Return the levels of the whole data set, ascending, and which of them each row has.

        >>> Labels(np.array([2.0, 1.0, 2.0]), np.array([0, 3])).find_levels()
        (array([1., 2.]), array([1, 0, 1]))
        """
        blocks = row_blocks(len(self.y), 1 << 20)  # sorting all at once would need much memory
        levels = self.levels
        if levels is None:
            levels = np.unique(np.concatenate([[], *(np.unique(self.y[a:b]) for a, b in blocks)]))
        level_of = np.empty(len(self.y), dtype=np.int64)
        for a, b in blocks:
            level_of[a:b] = np.searchsorted(levels, self.y[a:b])
        return levels, level_of

    def with_margin(self, scale: float) -> Labels:
        """Return labels with an offset that requires a lead of ``scale`` per unit of label."""
        if np.isnan(self.y).any():
            raise InputError(
                "margin='scaled' needs a label for every document: give y beside the preferences"
            )
        lead = scale * self.y
        return replace(self, offset=lead if self.offset is None else self.offset + lead)


@dataclass(frozen=True)
class Curvature:
    """A score Hessian as diagonal − low rank, filled by ``Loss.curvature``.

    Attributes
    ----------
    diag : array
        The diagonal.
    atoms : array of shape (n_rows, n_atoms)
        Weights of each row whose sums over each *cell* (say, the documents of one level of one
        query) span the low-rank part.
    aux : array of shape (n_cells, n_aux)
        Numbers of each cell for ``fold``.
    cell : array of int64
        The cell of each row.
    exact : bool
        Whether to work in float64 even if X is float32.
    """

    diag: FloatArray
    atoms: FloatArray
    aux: FloatArray
    cell: IntArray
    exact: bool = False

    @classmethod
    def empty(cls, loss: Loss[Any], plan: Plan, *, exact: bool = False) -> Curvature:
        """Return zeros for a loss to fill; rows without curvature stay zero."""
        atoms = np.zeros((plan.n_rows, loss.n_atoms))
        aux = np.zeros((int(plan.cell_ptr[-1]), loss.n_aux))
        return cls(np.zeros(plan.n_rows), atoms, aux, plan.cell, exact)


class Evaluated(NamedTuple):
    """Scores, and the value and score gradient of a loss there, on some queries."""

    u: FloatArray
    value: float
    g: FloatArray


class Loss(Part, ABC, Generic[P]):
    """A function of scores; the table in the module's docstring explains each operation.

    Attributes
    ----------
    name : str
    smooth : bool
        Whether the gradient is continuous, which Newton's method requires.
    takes_edges : bool
        Whether ``prepare`` accepts explicit preferences.
    n_atoms, n_aux : int
        Numbers of columns of ``Curvature.atoms`` and ``Curvature.aux``.
    pair_steepness : float
        For ``pair_slope``: the default step is one over this times the squared norm of a pair.
    """

    kind: ClassVar[str] = "loss"
    smooth: ClassVar[bool] = True
    takes_edges: ClassVar[bool] = False
    n_atoms: ClassVar[int] = 0
    n_aux: ClassVar[int] = 0
    pair_steepness: ClassVar[float] = 1.0

    @abstractmethod
    def prepare(self, labels: Labels) -> P:
        """Return the plan of labelled documents."""

    def weighed(self, labels: Labels) -> Labels:
        """Return labels whose query weights include those of the loss; here there are none."""
        return labels

    @property
    def unweighed(self) -> Loss[P]:
        """The same loss without its query weights, for labels that include them already."""
        return self

    def workspace(self, plan: P) -> P:
        """Return the plan with working memory for one problem.

        All operations give the same results with and without working memory.
        """
        return plan

    @abstractmethod
    def evaluate(self, plan: P, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        """Return the value over queries [r0, r1) and fill their rows of the score gradient."""

    def dual(self, plan: P, r0: int, r1: int, u: FloatArray, a: float) -> float:
        """Return the dual value of queries [r0, r1) at the point given by a·g."""
        raise NotImplementedError

    def dual_at(self, plan: P, r0: int, r1: int, point: Evaluated, a: float) -> float:
        """Return ``dual`` at a point where value and score gradient are known."""
        return self.dual(plan, r0, r1, point.u, a)

    def curvature(self, plan: P, r0: int, r1: int, u: FloatArray, out: Curvature) -> None:
        """Fill the rows and cells of queries [r0, r1) with the parts of the score Hessian."""
        raise NotImplementedError

    def fold(
        self, plan: P, r0: int, r1: int, aux: FloatArray, sums: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the factors of the low-rank part from sums over the cells of queries [r0, r1)."""
        raise NotImplementedError

    def product(
        self, plan: P, r0: int, r1: int, u: FloatArray, d: FloatArray, out: FloatArray
    ) -> None:
        """Fill the rows of queries [r0, r1) of the score Hessian times d.

        By default a central difference of gradients. That is accurate enough for a step, and no
        certificate depends on it.
        """
        rows = plan.span(r0, r1)
        size = float(np.abs(d[rows]).max(initial=0.0))
        h = np.cbrt(np.finfo(np.float64).eps) / size if size > 0.0 else 1.0
        ahead, behind = np.zeros_like(u), np.zeros_like(u)
        self.evaluate(plan, r0, r1, u + h * d, ahead)
        self.evaluate(plan, r0, r1, u - h * d, behind)
        out[rows] = (ahead[rows] - behind[rows]) / (2.0 * h)

    def products(
        self, plan: P, r0: int, r1: int, u: FloatArray, D: FloatArray, out: FloatArray
    ) -> None:
        """Fill the score Hessian times the columns of D; D and out have these queries' rows."""
        raise NotImplementedError

    def term_mass(self, plan: P) -> FloatArray:
        """Return the sum of the factors of each query's terms, for bounds on the curvature."""
        raise NotImplementedError

    def pair_slope(self) -> Any:
        """Return a compiled function of the winner's lead z and the difference of the labels.

        It returns the loss of the pair and its derivative with respect to z.
        """
        raise NotImplementedError

    def compiled(self, plan: P) -> tuple[Any, tuple[AnyArray | None, ...]]:
        """Return the compiled ``evaluate`` and its leading arguments, for loops inside kernels."""
        raise NotImplementedError


def query_scale(terms: FloatArray, query_weight: FloatArray | None, normalize: str) -> FloatArray:
    """Compute the factor ω_q / (c_q S) of each query from its number of terms T_q.

    >>> query_scale(np.array([2.0, 0.0, 4.0]), None, "query").tolist()
    [0.25, 0.0, 0.125]
    >>> query_scale(np.array([2.0, 0.0, 4.0]), None, "none").tolist()
    [1.0, 0.0, 1.0]
    """
    check_choice("normalize", normalize, NORMALIZATIONS)
    active = terms > 0
    weight = np.ones(len(terms)) if query_weight is None else np.asarray(query_weight, np.float64)
    weight = np.where(active, weight, 0.0)
    if not weight.any():
        raise NoLevelsError
    if normalize == "none":
        return weight
    if normalize == "term":
        return weight / float(np.sum(weight * terms))
    return np.divide(weight, terms, out=np.zeros_like(weight), where=active) / float(weight.sum())


def query_shares(loss: Loss[Any], labels: Labels) -> tuple[FloatArray, float]:
    """Return ω_q / c_q of each query, and S over these queries.

    With these numbers, divided by the sum of S over all parts of the data, as query weights, and
    with ``normalize="none"``, the objectives of the parts add up to that of the whole. A part
    whose queries all have one level has S = 0.
    """
    try:
        own = loss.prepare(labels).scale
    except NoLevelsError:
        return np.zeros(len(labels.query_ptr) - 1), 0.0
    weight = np.where(own > 0, 1.0 if labels.query_weight is None else labels.query_weight, 0.0)
    total = float(weight.sum())
    if labels.normalize == "none":
        return weight, total
    if labels.normalize == "term":
        return weight, total / float(own.sum())
    return own * total, total


class Cells(NamedTuple):
    """Rows sorted by query and level; a cell is one level of one query.

    Attributes
    ----------
    rows : array of int64
        Row numbers sorted by cell.
    row_ptr : array of int64
        Cell c holds ``rows[row_ptr[c]:row_ptr[c + 1]]``.
    cell : array of int64
        The cell of each row.
    cell_ptr : array of int64
        Query q owns the cells ``cell_ptr[q]:cell_ptr[q + 1]``, in ascending level.
    query : array of int64
        The query of each cell.
    level : array of int64
        The level of each cell, as its position among the levels of the whole data set.
    """

    rows: IntArray
    row_ptr: IntArray
    cell: IntArray
    cell_ptr: IntArray
    query: IntArray
    level: IntArray


def sort_into_cells(level_of: IntArray, n_levels: int, query_ptr: IntArray) -> Cells:
    """Return rows sorted by query and level.

    >>> cells = sort_into_cells(np.array([1, 0, 1, 0]), 2, np.array([0, 3, 4]))
    >>> cells.rows.tolist(), cells.row_ptr.tolist(), cells.cell_ptr.tolist()
    ([1, 0, 2, 3], [0, 1, 3, 4], [0, 2, 3])
    """
    query_of = np.repeat(np.arange(len(query_ptr) - 1), np.diff(query_ptr))
    key = query_of * n_levels + level_of
    rows = np.argsort(key, kind="stable")
    key = key[rows]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    row_ptr = np.append(starts, len(rows))
    cell = np.empty(len(rows), dtype=np.int64)
    cell[rows] = np.repeat(np.arange(len(starts)), np.diff(row_ptr))
    cell_ptr = np.searchsorted(row_ptr, query_ptr)
    query, level = np.divmod(key[starts], max(1, n_levels))
    return Cells(rows, row_ptr, cell, cell_ptr, query, level)


def mass_below(cells: Cells, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mass of each cell, and the mass of the lower cells of its query.

    Sums are within queries and nothing is subtracted, so a document of weight 0 has no effect at
    all, whatever the weights of the others.

    >>> cells = sort_into_cells(np.array([1, 0, 1, 0]), 2, np.array([0, 3, 4]))
    >>> [a.tolist() for a in mass_below(cells, np.array([0.1, 0.2, 0.3, 0.4]))]
    [[0.2, 0.4, 0.4], [0.0, 0.2, 0.0]]
    """
    own = np.bincount(cells.cell, mass, minlength=len(cells.query)).astype(np.float64, copy=False)
    below = np.zeros(len(own))
    _sum_before(own, cells.cell_ptr, below)
    return own, below


@kernel
def _sum_before(values: FloatArray, ptr: IntArray, out: FloatArray) -> None:
    for group in range(len(ptr) - 1):
        for at in range(ptr[group] + 1, ptr[group + 1]):
            out[at] = out[at - 1] + values[at - 1]


def reject_edges(labels: Labels, loss: Loss[Any]) -> None:
    """Reject explicit preferences for a loss that is not a sum over pairs."""
    if labels.edges is not None and not loss.takes_edges:
        raise InputError(
            f"the loss {loss.name!r} is not a sum over pairs, so it cannot learn from "
            "preferences: give labels y, or choose a pairwise loss"
        )
