"""FenchelRank, as published and corrective, and SparseRank as published, against Newton.

All on the squared hinge, one thread, until the objective is within the accuracy of an optimum that
Newton certified to 1e-10. SparseRank minimises the same objective as Newton; FenchelRank's is the
loss in the ball that the optimum lies on. Newton is timed until its own certificate, the others
are stopped by the known optimum, as soon as they are there or when their time is up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.domination.problems import alpha_max, lasso, load
from benchmarks.harness import Options, Table, show_seconds
from benchmarks.pairwise.clock import measure, now
from leanrank.execution import single_threaded_blas
from leanrank.losses.base import Labels
from leanrank.losses.hinge import SquaredHingeLoss
from leanrank.penalties.base import Penalty
from leanrank.penalties.elastic_net import L1Ball
from leanrank.problem.memory import MemoryProblem as Problem
from leanrank.solvers.base import Solver
from leanrank.solvers.first_order.fenchel import Fenchel
from leanrank.solvers.first_order.proximal import Proximal
from leanrank.solvers.newton.solver import Newton
from papers.public_sets import fetch

ACCURACIES = (1e-3, 1e-6)
SHARES = (0.1, 0.01, 0.001)
FOREVER = 10**9


def against_first_order(options: Options) -> Table:
    """Time to the same relative error of the objective, as multiples of Newton's."""
    patience = 0.5 if options.quick else 3.0
    table = Table("First-order solvers against Newton, ℓ1, squared hinge, Fold1, one thread")
    with single_threaded_blas():
        for name in ("OHSUMED", "MQ2008"):
            train, _, _ = fetch(name, data_dir=options.data, download=False).fold(1)
            loss = SquaredHingeLoss()
            problem = Problem(train.X, loss, loss.prepare(Labels(train.y, train.query_ptr)))
            for share in SHARES:
                _rows(table, name, problem, share, patience, options.repeat)
    table.note = (
        "Multiples of Newton's processor time; below 1 they win. ≥ where the accuracy was not "
        f"reached in {patience:.0f} s. {load()}"
    )
    return table


def _rows(
    table: Table, name: str, problem: Problem, share: float, patience: float, repeat: int
) -> None:
    penalty = lasso(share * alpha_max(problem), problem)
    exact = Newton(tol=1e-10).solve(problem, penalty)
    radius = float(np.abs(exact.w).sum())
    loss = exact.objective - penalty.value(exact.w)
    ball = L1Ball(problem.n_features, radius)

    def run(kind: type[Solver], part: Penalty, **options: Any) -> Any:
        return kind(**options).solve(problem, part)

    contestants: dict[str, tuple[float, Callable[..., Any]]] = {
        "FenchelRank (greedy)": (loss, partial(run, Fenchel, ball)),
        "FenchelRank (corrective)": (loss, partial(run, Fenchel, ball, variant="corrective")),
        "SparseRank (proximal)": (exact.objective, partial(run, Proximal, penalty)),
    }
    for accuracy in ACCURACIES:
        newton = measure(partial(run, Newton, penalty, tol=accuracy), repeat=repeat)
        row: dict[str, Any] = {
            "set": name,
            "alpha/alpha_max": share,
            "features": int(np.count_nonzero(exact.w)),
            "radius": radius,
            "accuracy": accuracy,
            "newton": str(newton),
        }
        for who, (optimum, solve) in contestants.items():
            limit = optimum * (1.0 + accuracy)
            seconds, rounds, there = _time_to(solve, limit, patience)
            if there:  # the second run finds caches warm, as Newton's did
                seconds = min(seconds, _time_to(solve, limit, patience)[0])
            row[who] = (
                f"{'' if there else '≥ '}{seconds / newton.median:.1f} ({rounds} rounds, "
                f"{show_seconds(seconds)})"
            )
        table.add(**row)


class _EnoughError(Exception):
    """Raised by a callback to end a solver."""


def _time_to(solve: Callable[..., Any], limit: float, patience: float) -> tuple[float, int, bool]:
    """Run until the objective is at most ``limit``; give seconds, rounds, and whether it was."""
    last: dict[str, Any] = {}
    start = now()

    def watch(entry: dict[str, Any]) -> None:
        last.update(entry)
        if entry["objective"] <= limit or now() - start > patience:
            raise _EnoughError

    with contextlib.suppress(_EnoughError):
        solve(tol=1e-14, max_iter=FOREVER, callback=watch)
    return now() - start, last["iteration"], last["objective"] <= limit
