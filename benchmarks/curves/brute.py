"""Ramps that are never stored, beside ramps that are written out, and beside another solver."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.harness import Options, Table
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.ramps import ramp_design
from leanrank.execution import Executor
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.penalties.groups import GroupPenalty
from leanrank.problem.memory import MemoryProblem
from leanrank.solvers.first_order.proximal import Proximal
from leanrank.solvers.newton.solver import Newton

SEGMENTS = 5


def brute(options: Options) -> list[Table]:
    table = Table("Largest differences from ramps that are written out, over random data sets")
    seeds = range(2 if options.quick else 20)
    for form in ("dense float64", "dense float32", "sparse float64", "sparse float32"):
        found = [_differences(form, seed) for seed in seeds]
        worst = {name: f"{max(each[name] for each in found):.1e}" for name in found[0]}
        table.add(X=form, **worst)
    table.note = (
        f"{len(seeds)} sets of 300 documents with ties, gaps, few values, constants and offsets; "
        "Domination Rank, sparse group penalty. Gradient and Hessian: relative to the largest "
        "entry. Objective: of Newton on ramps, relative to proximal gradient steps on explicit "
        "columns to a gap of 1e-7. Gap: the largest that Newton states."
    )
    return [table]


def _differences(form: str, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    X: Any = _awkward(rng).astype(form.split()[1])
    plain = X.astype(np.float64)
    ramps = RampColumns.at_quantiles(X, SEGMENTS)
    design = ramp_design(csr_array(X) if "sparse" in form else X, ramps, Executor())
    columns = _written_out(plain, ramps)
    loss = get_loss("domination")
    sizes = [0, 1, 4, 60, 35, 100, 50, 50]
    ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    plan = loss.prepare(Labels(rng.integers(0, 3, 300).astype(np.float64), ptr))
    ours, theirs = (MemoryProblem(each, loss, plan) for each in (design, columns))
    w = rng.normal(size=design.n_features)
    ours.at(w), theirs.at(w)
    some = rng.permutation(design.n_features)[:9]
    gradients = ours.gradient(), theirs.gradient()
    hessians = [p.hessian(p.design.take(some), p.point.u, exact=True) for p in (ours, theirs)]
    ours.at(np.zeros(design.n_features))
    groups = design.ramps.feature
    unit = GroupPenalty.build(1.0, 1.0, design.n_features, groups, group_ratio=0.5)
    penalty = unit.times(0.2 * unit.alpha_max_ratio(ours.gradient()))
    newton = Newton(tol=1e-8).solve(ours, penalty)
    steps = Proximal(tol=1e-7, max_iter=20_000).solve(theirs, penalty)
    return {
        "gradient": _relative(*gradients),
        "Hessian": _relative(*hessians),
        "objective": abs(newton.objective / steps.objective - 1.0),
        "gap": newton.gap,
    }


def _relative(ours: Any, theirs: Any) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def _awkward(rng: np.random.Generator, n: int = 300) -> Any:
    X = rng.normal(size=(n, 9))
    X[:, 1] = np.where(rng.random(n) < 0.7, 0.0, rng.exponential(size=n))
    X[:, 2] = rng.integers(0, 3, n)
    X[:, 3] = 5.0
    X[rng.random(n) < 0.3, 4] = np.nan
    X[:, 5] = np.where(rng.random(n) < 0.2, np.nan, 2.0)
    X[:, 6] = np.nan
    X[:, 7] = 1e6 + rng.integers(0, 1000, n)
    X[:, 8] = np.where(rng.random(n) < 0.9, 0.0, rng.integers(-2, 3, n))
    return X


def _written_out(X: Any, ramps: RampColumns) -> Any:
    columns = []
    for x, knots in zip(X.T, ramps.knots, strict=True):
        for low, high in pairwise(knots):
            columns.append(np.nan_to_num(np.clip((x - low) / (high - low), 0.0, 1.0)))
        if np.isnan(x).any():
            columns.append(np.isnan(x).astype(np.float64))
    return np.column_stack(columns)
