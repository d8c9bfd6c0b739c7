"""The default ranker on Dask: curves, with strength and sizes chosen on one held-out fifth."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from leanrank._typing import Callback, FloatArray
from leanrank.errors import InputError, NoLevelsError
from leanrank.losses.base import Labels, Loss
from leanrank.problem.sharded import ShardedProblem, Shards
from leanrank.rankers.lean_search import PATIENCE
from leanrank.rankers.lean_structure import Settings, Size, Structure, parts_within, target_sizes
from leanrank.rankers.path import alpha_max
from leanrank.solvers.base import Solution
from leanrank.solvers.newton.solver import Newton

HELD_OUT = 5
"""One query in this many is held out, counted in each partition."""


def _only(held_out: bool, labels: Labels) -> Labels:
    """Return labels in which only the held-out queries count, or only the others."""
    at = np.arange(len(labels.query_ptr) - 1)
    given = 1.0 if labels.query_weight is None else labels.query_weight
    return replace(labels, query_weight=given * ((at % HELD_OUT == 0) == held_out))


class ShardedSearch:
    """The search for documents in shards.

    Parameters
    ----------
    shards : Shards
    loss : Loss
    settings : Settings
    """

    def __init__(self, shards: Shards, loss: Loss[Any], settings: Settings) -> None:
        self.shards, self.settings, self.top = shards, settings, 0.0
        self.structure = Structure(shards, shards.ramps)  # type: ignore[arg-type]
        try:
            self.fitted, self.held_out, self.whole = (
                ShardedProblem(shards, loss, relabel=relabel)
                for relabel in (partial(_only, False), partial(_only, True), None)
            )
        except NoLevelsError as error:
            raise InputError(
                "too few queries with different labels to hold a fifth out: give X.compute()"
            ) from error

    def run(self, tol: float, report: Callback) -> tuple[float, list[Size]]:
        """Choose the strength and fit a model of every size; return both."""
        penalty = self.settings.penalty(self.structure)
        top, w = alpha_max(self.fitted, penalty)
        found: list[tuple[float, FloatArray]] = []
        for strength in self.settings.strengths:
            w = self._solve(self.fitted, penalty, strength * top, w).w
            found.append((self.held_out.at(w), w))
            best = int(np.argmin([loss for loss, _ in found]))
            if len(found) - 1 - best >= PATIENCE:
                break
        strength = float(self.settings.strengths[best])
        report({"choice": "curves", "strength": strength, "loss": found[best][0]})
        self.top, whole = alpha_max(self.whole, penalty)
        w, sizes = found[best][1], []
        dropped = np.zeros(0, dtype=np.int64)
        for size in target_sizes(max(1, len(self.structure.used(w)))):
            used = self.structure.used(w)
            if len(used) > size:
                kept = used[np.argsort(self.spreads(w)[used], kind="stable")][-size:]
                dropped = np.setdiff1d(np.arange(self.structure.n_features), kept)
            penalty = self.settings.penalty(self.structure, dropped)
            w = self._solve(self.fitted, penalty, strength * top, penalty.permitted(w)).w
            start = penalty.permitted(whole)
            solution = self._solve(self.whole, penalty, strength * self.top, start, tol)
            whole = solution.w
            n_features = len(self.structure.used(whole))
            row = {"features": n_features, "pairs": 0, "loss": self.held_out.at(w)}
            sizes.append(Size(self.structure, solution, dropped, row))
        return strength, sizes

    def _solve(
        self, problem: ShardedProblem, penalty: Any, alpha: float, w: FloatArray, tol: float = 1e-4
    ) -> Solution:
        return Newton(tol, max_iter=1_000).solve(problem, penalty.times(alpha), w.copy())

    def spreads(self, w: FloatArray) -> FloatArray:
        """Return the standard deviation of each feature's part of the scores, within queries."""
        squares, count = self.whole.summed(_squares, self.shards.ramps, w)
        return np.asarray(np.sqrt(squares / max(1, count)))


def _squares(problem: Any, ramps: Any, w: FloatArray) -> tuple[FloatArray, int]:
    """Return sums of squares within queries of what each feature adds, and the number of rows."""
    structure, sizes = Structure(problem.design, ramps), np.diff(problem.plan.query_ptr)
    out, counted = np.zeros(structure.n_features), problem.plan.scale > 0
    for term, part in parts_within(structure, w, sizes, counted):
        out[term] = np.sum(part**2)
    return out, int(sizes[counted].sum())
