"""Solvers: methods that minimise a loss plus a penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leanrank.solvers.base import Solver

SOLVERS: dict[str, str] = {
    "newton": "leanrank.solvers.newton.solver.Newton",
    "proximal": "leanrank.solvers.first_order.proximal.Proximal",
    "cutting-plane": "leanrank.solvers.first_order.cutting_plane.CuttingPlane",
    "bound-cd": "leanrank.solvers.first_order.bound_cd.BoundDescent",
    "fenchel": "leanrank.solvers.first_order.fenchel.Fenchel",
    "majorise": "leanrank.solvers.first_order.majorise.Majorise",
}
"""The name of each solver as a parameter of rankers, and the class."""


def get_solver(name: object) -> type[Solver]:
    """Return the class of a solver by its name.

    >>> get_solver("newton").__name__
    'Newton'
    """
    from importlib import import_module

    if not isinstance(name, str) or name not in SOLVERS:
        from leanrank.errors import InputError, suggest

        raise InputError(f"there is no solver {name!r}: {suggest(name, SOLVERS)}")
    module, _, kind = SOLVERS[name].rpartition(".")
    found: type[Solver] = getattr(import_module(module), kind)
    return found
