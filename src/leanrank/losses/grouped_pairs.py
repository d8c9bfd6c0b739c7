"""The Hessian of a pairwise loss, with documents of similar score taken together.

A pairwise loss has the score Hessian D − B − Bᵀ, B_ij = c_ij φ″(u_i − u_j) for a winner i and a
loser j, and D the row sums of B + Bᵀ. φ″ depends on scores only, so documents of one level and
about the same score have about the same row. Each level of a query is cut along its scores into
groups of equal size, and φ″ is replaced by one number for each pair of groups. B then has the rank
of the number of groups, so the Hessian is a diagonal less a low rank: what ``curvature`` and
``fold`` are for.

It stays the Laplacian of a graph with weights above zero, so a model with it is convex. Its
accuracy shows in the number of steps only: values, gradients and certificates are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray
from leanrank.losses._score_order import sort_scores
from leanrank.losses.base import Curvature, Labels, Loss, Plan
from leanrank.losses.pairs import PairPlan, level_arrays, order_of

MOST_GROUPS = 32
"""Largest number of groups per level: 16 need a few more steps, 64 cost more and save none."""

FEWEST_GROUPS = 8
"""Smallest number of groups per level, used with many levels."""

MOST_IN_QUERY = 64
"""Groups of a query that are shared among its levels, if each then has enough."""

MOST_LEVELS = 16
"""Levels of a query above which neighbours are merged. Pairs within one, at most a sixteenth, are
then left out, which takes no more steps; 32 and 64 levels take longer."""

GROUP_SIZE = 16
"""Documents per group, on average over all queries, from which grouping saves time."""


@dataclass(frozen=True)
class GroupedPlan(Plan):
    """A plan whose cells are groups of documents: ``curvature`` fills in ``cell``.

    Attributes
    ----------
    pairs : PairPlan
        The plan of the pairwise loss.
    """

    pairs: PairPlan


class GroupedPairs(Loss[GroupedPlan]):
    """The approximate Hessian of a pairwise loss, which itself gives the values.

    Parameters
    ----------
    margin : float
        That of a squared hinge; not a number for the logistic loss.
    n_aux : int
        Most groups of a query: their numbers φ″ go with the rows of the winners' groups.
    """

    name: ClassVar[str] = "grouped pairs"
    n_atoms: ClassVar[int] = 2

    def __init__(self, margin: float, n_aux: int) -> None:
        self.margin = margin
        self.n_aux = n_aux  # type: ignore[misc]

    def prepare(self, labels: Labels) -> GroupedPlan:
        """Not available: groups are made from the plan of a pairwise loss."""
        raise NotImplementedError

    def evaluate(self, plan: GroupedPlan, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        """Not available: only the Hessian is approximate."""
        raise NotImplementedError

    def curvature(self, plan: GroupedPlan, r0: int, r1: int, u: FloatArray, out: Curvature) -> None:
        """Group the documents of queries [r0, r1) and fill the parts of their Hessian."""
        pairs = plan.pairs
        known = *level_arrays(pairs), order_of(pairs), plan.cell_ptr
        _curvature(*known, self.margin, r0, r1, u, plan.cell, out.diag, out.atoms, out.aux)

    def fold(
        self, plan: GroupedPlan, r0: int, r1: int, aux: FloatArray, sums: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the factors of B: sums over winners' groups, and over all they win against."""
        base = int(plan.cell_ptr[r0])
        left, right = [sums[:0, 0]], [sums[:0, 1]]
        for q in range(r0, r1):
            low, high = int(plan.cell_ptr[q]), int(plan.cell_ptr[q + 1])
            bends = aux[low:high, : high - low]
            winners = bends.any(axis=1)
            own = sums[low - base : high - base]
            left.append(own[winners, 0])
            right.append(bends[winners] @ own[:, 1])
        return np.concatenate(left), np.concatenate(right)


def group_pairs(
    plan: PairPlan, margin: float, *, group_size: int = GROUP_SIZE
) -> tuple[GroupedPairs, GroupedPlan] | None:
    """Return the approximate Hessian of a pairwise loss; None if it would save nothing.

    Parameters
    ----------
    plan : PairPlan
    margin : float
        That of a squared hinge; not a number for the logistic loss.
    group_size : int
        Mean size of a group from which grouping is worth it.
    """
    if plan.edges is not None:
        return None
    most_levels = int(np.diff(plan.cell_ptr).max(initial=1, where=plan.scale > 0))
    if most_levels > MOST_LEVELS:
        if len(plan.table):
            return None
        plan, most_levels = _fewer_levels(plan), MOST_LEVELS
    per_level = min(MOST_GROUPS, max(FEWEST_GROUPS, MOST_IN_QUERY // most_levels))
    groups = np.minimum(np.diff(plan.row_ptr), per_level)
    groups[np.repeat(plan.scale <= 0, np.diff(plan.cell_ptr))] = 0
    cell_ptr = np.concatenate(([0], np.cumsum(groups)))[plan.cell_ptr]
    if plan.n_rows < group_size * int(cell_ptr[-1]):
        return None
    cell = np.zeros(plan.n_rows, dtype=np.int64)
    grouped = GroupedPlan(plan.query_ptr, plan.scale, plan.offset, cell, cell_ptr, plan)
    return GroupedPairs(margin, int(np.diff(cell_ptr).max(initial=0))), grouped


def _fewer_levels(plan: PairPlan) -> PairPlan:
    """Merge neighbouring levels of queries with many."""
    sizes = np.diff(plan.cell_ptr)
    fewer = np.minimum(sizes, MOST_LEVELS)
    cell_ptr = np.concatenate(([0], np.cumsum(fewer)))
    query = np.repeat(np.arange(len(sizes)), sizes)
    level = np.arange(len(query)) - plan.cell_ptr[query]
    merged = cell_ptr[query] + level * fewer[query] // sizes[query]
    row_ptr = plan.row_ptr[np.searchsorted(merged, np.arange(cell_ptr[-1] + 1))]
    return replace(plan, cell=merged[plan.cell], cell_ptr=cell_ptr, row_ptr=row_ptr)


@kernel
def _curvature(
    query_ptr: IntArray, cell_ptr: IntArray, cell: IntArray, win: FloatArray, lose: FloatArray,
    table: FloatArray, table_ptr: IntArray, order: IntArray, group_ptr: IntArray, margin: float,
    r0: int, r1: int, u: FloatArray, group: IntArray, diag: FloatArray, atoms: FloatArray,
    bends: FloatArray,
) -> None:  # fmt: skip
    """Fill the group of each document, degrees, weights in either role, and φ″ by groups.

    Parameters as for the kernels of pairs. Query q owns the groups ``group_ptr[q]:group_ptr[q+1]``.
    """
    for q in range(r0, r1):
        begin, end = query_ptr[q], query_ptr[q + 1]
        first, last = group_ptr[q], group_ptr[q + 1]
        if last == first:
            continue
        rows = order[begin:end].copy()  # the problem's scratch is only read
        x = np.empty(end - begin)
        sort_scores(u, begin, rows, x)
        n_levels = cell_ptr[q + 1] - cell_ptr[q]
        ptr, level = _cut_levels(rows, x, cell, cell_ptr[q], n_levels, last - first)
        wins, loses = win[rows], lose[rows]
        weights = table[table_ptr[q] : table_ptr[q + 1]]
        own = bends[first:last]
        own[:] = 0.0
        if math.isnan(margin):
            _logistic(x, ptr, level, weights, n_levels, own)
        else:
            _squared_hinge(x, ptr, level, wins, loses, weights, n_levels, margin, own)
        _fill_degrees(rows, ptr, wins, loses, own, diag)
        for g in range(last - first):
            for at in range(ptr[g], ptr[g + 1]):
                group[rows[at]] = first + g
                atoms[rows[at], 0], atoms[rows[at], 1] = wins[at], loses[at]


@kernel
def _cut_levels(
    rows: IntArray, x: FloatArray, cell: IntArray, first: int, n_levels: int, n_groups: int,
) -> tuple[IntArray, IntArray]:  # fmt: skip
    """Sort rows in order of score by level; return where groups begin, and their levels.

    All levels have the same number of groups, or as many as documents if these are fewer.
    """
    n = len(rows)
    starts = np.zeros(n_levels + 1, np.int64)
    for at in range(n):
        starts[cell[rows[at]] - first + 1] += 1
    per_level, total = 0, 0
    while total < n_groups:
        per_level += 1
        for k in range(n_levels):
            total += starts[k + 1] >= per_level
    for k in range(n_levels):
        starts[k + 1] += starts[k]
    free, old_rows, old_x = starts.copy(), rows.copy(), x.copy()
    for at in range(n):
        k = cell[old_rows[at]] - first
        rows[free[k]], x[free[k]] = old_rows[at], old_x[at]
        free[k] += 1
    ptr, level = np.empty(n_groups + 1, np.int64), np.empty(n_groups, np.int64)
    g = 0
    for k in range(n_levels):
        size = starts[k + 1] - starts[k]
        own = min(size, per_level)
        for at in range(own):
            ptr[g], level[g] = starts[k] + at * size // own, k
            g += 1
    ptr[n_groups] = n
    return ptr, level


@kernel
def _squared_hinge(
    x: FloatArray, ptr: IntArray, level: IntArray, win: FloatArray, lose: FloatArray,
    weights: FloatArray, n_levels: int, margin: float, out: FloatArray,
) -> None:  # fmt: skip
    """Fill twice the share of the violated pairs in those of two groups; row the winners'."""
    for a in range(len(level)):
        for b in range(len(level)):
            if level[b] >= level[a]:
                break
            least, most = x[ptr[a]] - x[ptr[b + 1] - 1], x[ptr[a + 1] - 1] - x[ptr[b]]
            if not margin - least > 0.0:
                continue
            out[a, b] = 2.0 * _weight(weights, n_levels, level[a], level[b])
            if not margin - most > 0.0:
                out[a, b] *= _violated(x, win, lose, ptr[a], ptr[a + 1], ptr[b], ptr[b + 1], margin)


@kernel
def _violated(
    x: FloatArray, win: FloatArray, lose: FloatArray, low: int, high: int, first: int, last: int,
    margin: float,
) -> float:  # fmt: skip
    """Return the share, by weight, of violated pairs: winners [low, high), losers [first, last)."""
    found, won, lost, j = 0.0, 0.0, 0.0, last
    for i in range(high - 1, low - 1, -1):  # a lower winner is violated by more losers
        while j > first and margin - (x[i] - x[j - 1]) > 0.0:
            j -= 1
            lost += lose[j]
        found += win[i] * lost
        won += win[i]
    for at in range(first, j):
        lost += lose[at]
    return found / (won * lost) if won * lost > 0.0 else 0.0


@kernel
def _logistic(
    x: FloatArray, ptr: IntArray, level: IntArray, weights: FloatArray, n_levels: int,
    out: FloatArray,
) -> None:  # fmt: skip
    """Fill φ″ at the difference of the mean scores of two groups; row the winners'."""
    n = len(level)
    mean = np.empty(n)
    for a in range(n):
        base, total = x[ptr[a]], 0.0
        for at in range(ptr[a], ptr[a + 1]):
            total += x[at] - base
        mean[a] = base + total / (ptr[a + 1] - ptr[a])
    for a in range(n):
        for b in range(n):
            if level[b] >= level[a]:
                break
            e = math.exp(-abs(mean[a] - mean[b]))
            out[a, b] = _weight(weights, n_levels, level[a], level[b]) * e / ((1.0 + e) * (1.0 + e))


@kernel
def _weight(weights: FloatArray, n_levels: int, winner: int, loser: int) -> float:
    return 1.0 if len(weights) == 0 else weights[winner * n_levels + loser]


@kernel
def _fill_degrees(
    rows: IntArray, ptr: IntArray, win: FloatArray, lose: FloatArray, bends: FloatArray,
    diag: FloatArray,
) -> None:  # fmt: skip
    """Fill the row sums of B + Bᵀ."""
    n = len(ptr) - 1
    won, lost = np.zeros(n), np.zeros(n)
    for a in range(n):
        for at in range(ptr[a], ptr[a + 1]):
            won[a] += win[at]
            lost[a] += lose[at]
    for a in range(n):
        as_winner, as_loser = 0.0, 0.0
        for b in range(n):
            as_winner += bends[a, b] * lost[b]
            as_loser += bends[b, a] * won[b]
        for at in range(ptr[a], ptr[a + 1]):
            diag[rows[at]] = win[at] * as_winner + lose[at] * as_loser
