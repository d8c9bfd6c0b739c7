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

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leanrank._typing import FloatArray
from leanrank.losses import _group_kernels as kernels
from leanrank.losses.base import Labels, Loss, Plan
from leanrank.losses.pairs import PairPlan, level_arrays, scratch_of

MOST_GROUPS = 32
"""Most groups of a level: 16 take as many steps or a few more, 64 cost more and save none."""

FEWEST_GROUPS = 8
"""Fewest groups of a level; with more than a few levels, this many."""

MOST_IN_QUERY = 64
"""Groups of a query that are shared among its levels, if each then has enough."""

MOST_LEVELS = 16
"""Levels above which documents are not grouped: most groups would be of different levels."""

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
    """The approximate Hessian of a pairwise loss; for its values ask that loss.

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

    def curvature(
        self,
        plan: GroupedPlan,
        r0: int,
        r1: int,
        u: FloatArray,
        diag: FloatArray,
        atoms: FloatArray,
        aux: FloatArray,
    ) -> None:
        """Group the documents of queries [r0, r1) and fill the parts of their Hessian."""
        pairs = plan.pairs
        known = *level_arrays(pairs), scratch_of(pairs).order, plan.cell_ptr
        kernels.curvature(*known, self.margin, r0, r1, u, plan.cell, diag, atoms, aux)

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
    n_levels = np.where(plan.scale > 0, np.diff(plan.cell_ptr), 0)
    most_levels = int(n_levels.max(initial=1))
    if plan.edges is not None or most_levels > MOST_LEVELS:
        return None
    per_level = min(MOST_GROUPS, max(FEWEST_GROUPS, MOST_IN_QUERY // most_levels))
    groups = np.minimum(np.diff(plan.row_ptr), per_level)
    groups[np.repeat(plan.scale <= 0, np.diff(plan.cell_ptr))] = 0
    cell_ptr = np.concatenate(([0], np.cumsum(groups)))[plan.cell_ptr]
    if plan.n_rows < group_size * int(cell_ptr[-1]):
        return None
    cell = np.zeros(plan.n_rows, dtype=np.int64)
    grouped = GroupedPlan(plan.query_ptr, plan.scale, plan.offset, cell, cell_ptr, plan)
    return GroupedPairs(margin, int(np.diff(cell_ptr).max(initial=0))), grouped
