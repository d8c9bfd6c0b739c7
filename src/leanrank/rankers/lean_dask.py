"""The default ranker on Dask: curves, with strength and sizes chosen on one held-out fifth."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from leanrank._typing import Callback, FloatArray
from leanrank.designs.base import make_design
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.ramps import ramp_design
from leanrank.errors import InputError, NoLevelsError
from leanrank.execution import SerialExecutor
from leanrank.losses.base import Labels, Loss
from leanrank.problem.shard import Shard
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
        found = self.shards.map(_squares, self.shards.ramps, w)
        squares, counts = (np.sum(each, axis=0) for each in zip(*found, strict=True))
        return np.asarray(np.sqrt(squares / max(1, counts)))


def _squares(shard: Shard, ramps: RampColumns | None, w: FloatArray) -> tuple[FloatArray, int]:
    """Return sums of squares within queries of what each feature adds, and the number of rows."""
    data, serial = shard.data, SerialExecutor()
    out, sizes = np.zeros(data.n_features), np.diff(data.query_ptr)
    if not data.informative.any():
        return out, 0
    design = make_design(data.X, serial, data.query_ptr)
    structure = Structure(design if ramps is None else ramp_design(data.X, ramps, serial), ramps)
    for term, part in parts_within(structure, w, sizes, data.informative):
        out[term] = np.sum(part**2)
    return out, int(sizes[data.informative].sum())
