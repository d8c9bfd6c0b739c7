"""Methods that minimise a loss plus a penalty, by family."""

from __future__ import annotations

from typing import Any

SOLVERS: dict[str, str] = {
    "newton": "leanrank.solvers.newton.solver.solve_newton",
    "proximal": "leanrank.solvers.first_order.proximal.solve_proximal",
    "cutting-plane": "leanrank.solvers.first_order.cutting_plane.solve_cutting_plane",
    "bound-cd": "leanrank.solvers.first_order.bound_cd.solve_bound_cd",
    "ftrl": "leanrank.solvers.sampling.ftrl_solver.solve_ftrl",
}
"""The name of each solver of a loss and a penalty, and the function."""


def get_solver(name: str) -> Any:
    """Return a solver by its name: ``solve(problem, penalty, w=, tol=, max_iter=, callback=)``.

    >>> get_solver("newton").__name__
    'solve_newton'
    """
    from importlib import import_module

    if not isinstance(name, str) or name not in SOLVERS:
        from leanrank.errors import InputError, suggest

        raise InputError(f"there is no solver {name!r}: {suggest(name, SOLVERS)}")
    module, _, function = SOLVERS[name].rpartition(".")
    return getattr(import_module(module), function)
