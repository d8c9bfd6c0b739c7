"""What to try for each system: sensible values for data whose features are on one scale.

A *system* is a ranker with the settings that make it what it is: ``ranksvm`` and ``ranksvm-l1`` are
one class. Every ranker has a system of its own name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leanrank.errors import InputError
from leanrank.rankers import RANKERS
from leanrank.selection.sweeps import AlphaPath, Fits, Sizes, Sweep
from leanrank.selection.validation import grid_points


@dataclass(frozen=True)
class Space:
    """What to try for a system.

    Attributes
    ----------
    ranker : str
        Its name on the command line.
    fixed : mapping
        Parameters that are always the same.
    grid : mapping of str to tuple
        Parameters to vary; all combinations are tried.
    sweep : Sweep
        What a fit gives: one model, or many at once.
    title : str
        How tables call it; by default as its class is called.
    """

    ranker: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    sweep: Sweep = field(default_factory=Fits)
    title: str = ""

    def settings(self) -> list[dict[str, Any]]:
        """List what to try, in the order in which it is tried."""
        return grid_points(self.grid)


def decades(low: int, high: int, per_decade: int = 2) -> tuple[float, ...]:
    """Space values evenly on a logarithmic scale, with two digits.

    >>> decades(-1, 1)
    (0.1, 0.32, 1.0, 3.2, 10.0)
    """
    exponents = np.linspace(low, high, (high - low) * per_decade + 1)
    return tuple(float(f"{10.0**e:.2g}") for e in exponents)


L1_PATH = AlphaPath(n_alphas=20, alpha_min_ratio=1e-3)
L2_PATH = AlphaPath(alphas=decades(-6, 2))

SPACES: dict[str, Space] = {
    "domination": Space("domination", sweep=L1_PATH, title="Domination Rank"),
    # as published: every pair counts the same, whatever its query
    "ranksvm": Space("ranksvm", {"normalize": "term"}, sweep=L2_PATH, title="RankSVM"),
    "ranksvm-hinge": Space(
        "ranksvm",
        {"normalize": "term", "loss": "hinge", "tol": 1e-3},
        sweep=AlphaPath(alphas=decades(-4, 2)),
        title="RankSVM hinge",
    ),
    "ranksvm-query": Space("ranksvm", sweep=L2_PATH, title="RankSVM by query"),
    "ranksvm-l1": Space("ranksvm", {"l1_ratio": 1.0}, sweep=L1_PATH, title="RankSVM ℓ1"),
    "fenchelrank": Space(
        "fenchelrank",
        {"tol": 1e-4},
        {"radius": (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 50.0, 100.0)},
        title="FenchelRank",
    ),
    "sparserank": Space("sparserank", {"tol": 1e-4}, sweep=L1_PATH, title="SparseRank"),
    "nonconvex": Space(
        "nonconvex",
        {"tol": 1e-4},
        {"penalty": ("lp", "mcp", "log")},
        AlphaPath(n_alphas=12, alpha_min_ratio=1e-3),
        title="Non-convex SVM",
    ),
    "rsrank": Space(
        "rsrank",
        {"epochs": 5, "random_state": 0},
        {"alpha": decades(-4, -1), "loss": ("hinge", "squared-hinge")},
        title="RSRank",
    ),
    "minbatsrank": Space(
        "minbatsrank",
        {"random_state": 0},
        {"alpha": (0.3, 0.1, 0.03, 0.01, 0.003), "gamma": (0.1, 1.0, 10.0)},
        title="MinBatSRank",
    ),
    "minbatsrank-nonfea": Space(
        "minbatsrank",
        {"rates": "uniform", "random_state": 0},
        {"alpha": (0.3, 0.1, 0.03, 0.01, 0.003), "gamma": (0.1, 1.0, 10.0)},
        title="Nonfea",
    ),
    "rankrls": Space("rankrls", sweep=L2_PATH, title="RankRLS"),
    "rankrlscv": Space("rankrlscv", {"alphas": decades(-6, 2)}, title="RankRLS, own CV"),
    "greedyrankrls": Space(
        "greedyrankrls", grid={"alpha": decades(-4, 0)}, sweep=Sizes(50), title="Greedy RankRLS"
    ),
    "ranknet": Space("ranknet", sweep=L2_PATH, title="RankNet"),
    "listnet": Space("listnet", grid={"target": ("label", "gain")}, sweep=L1_PATH, title="ListNet"),
    "rankboost": Space(
        "rankboost",
        {"n_rounds": 300, "patience": 100},
        {"n_thresholds": (8, 32, 128, None), "normalize": ("query", "term")},
        title="RankBoost",
    ),
    "adarank": Space(
        "adarank",
        {"measure": "map"},
        {"signs": (1, 0), "repeats": ("progress", "always", "never")},
        title="AdaRank-MAP",
    ),
    "adarank-ndcg": Space(
        "adarank",
        {"measure": "ndcg@5"},
        {"signs": (1, 0), "repeats": ("progress", "always", "never")},
        title="AdaRank-NDCG",
    ),
    "spd": Space(
        "spd",
        {"epochs": 5, "random_state": 0},
        {"alpha": decades(-5, 0, 1), "loss": ("hinge", "squared-hinge")},
        title="SPD",
    ),
    "lcra": Space(
        "lcra",
        {"epochs": 3, "n_steps": 20_000, "random_state": 0},  # a step draws eleven pairs
        {"alpha": decades(-3, 0, 1), "mu": (1e-3, 1e-2, 1e-1)},
        title="LCRA",
    ),
    "pamir": Space(
        "pamir",
        {"epochs": 5, "random_state": 0},
        {"C": decades(-4, 1, 1), "average": (False, True)},
        title="PAMIR",
    ),
}
"""The systems by name. Those whose ranker is not there are left out of what is offered."""

_DENSE_PATH = AlphaPath(n_alphas=30, alpha_min_ratio=3e-3)

TUNING: dict[str, Space] = {
    # paths first: one trial gives models of every size
    "domination": Space(
        "domination",
        {"tol": 1e-5},
        {"normalize": ("query", "term"), "l1_ratio": (1.0, 0.8), "margin": (None, "scaled")},
        _DENSE_PATH,
    ),
    "ranksvm-l1": Space(
        "ranksvm",
        {"tol": 1e-5},
        {"normalize": ("query", "term"), "l1_ratio": (1.0, 0.8), "importance": (None, "ndcg")},
        _DENSE_PATH,
    ),
    "greedyrankrls": Space(
        "greedyrankrls", {}, {"alpha": decades(-4, 0, 1), "normalize": ("query", "term")}, Sizes(30)
    ),
    "nonconvex": Space(
        "nonconvex",
        {"tol": 1e-4},
        {"penalty": ("mcp", "lp", "log"), "loss": ("domination", "squared-hinge")},
        AlphaPath(n_alphas=12, alpha_min_ratio=1e-3),
    ),
    "listnet": Space("listnet", {"tol": 1e-5}, {"target": ("gain", "label")}, _DENSE_PATH),
    **{
        name: SPACES[name]
        for name in (
            "minbatsrank",
            "adarank",
            "rankrls",
            "ranksvm-query",
            "ranksvm",
            "ranknet",
            "rankboost",
            "rsrank",
            "pamir",
            "spd",
            "lcra",
        )
    },
}
"""What a search tries unless told otherwise, in this order: what is sparse, strong and quick first.

Left out are systems with the same optimum as one that is quicker (FenchelRank and SparseRank have
RankSVM's), and those that choose their parameters themselves; they can be named."""


def get_space(name: str) -> Space:
    """Give what to try for a system.

    >>> get_space("rankrls").ranker
    'rankrls'
    """
    known = {system: space for system, space in SPACES.items() if space.ranker in RANKERS}
    if name not in known:
        raise InputError(f"there is no system {name!r}: choose from {', '.join(known)}")
    return known[name]
