"""The table of ranking systems: class, names, paper, search space and capabilities of each.

A *system* is a ranker with fixed settings: ``ranksvm`` and ``ranksvm-l1`` have the same class.
Every list of rankers or systems comes from ``SYSTEMS``, in its order: sparse, strong and fast ones
first. A new ranker is one file and one entry. This module imports no ranker.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from leanrank.errors import InputError, suggest


@dataclass(frozen=True)
class Fits:
    """One fit gives one model.

    Attributes
    ----------
    stop_early : bool
        Whether a ranker that can stop early by validation data gets them.
    """

    stop_early: bool = True


@dataclass(frozen=True)
class AlphaPath:
    """One fit gives the ranker's path of strengths, each model started from the one before.

    Attributes
    ----------
    alphas : tuple of float, optional
        By default ``n_alphas`` from alpha_max, where the first feature enters, down to
        ``alpha_min_ratio`` times it.
    """

    alphas: tuple[float, ...] | None = None
    n_alphas: int = 16
    alpha_min_ratio: float = 1e-3


@dataclass(frozen=True)
class Sizes:
    """One greedy fit gives every number of features up to ``most``."""

    most: int = 50


@dataclass(frozen=True)
class Front:
    """One fit gives a model of every number of features, as the ranker itself drops them."""


@dataclass(frozen=True)
class Space:
    """The search space of a system.

    Attributes
    ----------
    ranker : str
        The name of the ranker on the command line.
    fixed : mapping
        Fixed parameters.
    grid : mapping of str to tuple
        Parameters to vary; all combinations are tried.
    sweep : Fits, AlphaPath, Sizes or Front
        The models that one fit gives.
    """

    ranker: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    sweep: Fits | AlphaPath | Sizes | Front = field(default_factory=Fits)

    def settings(self) -> list[dict[str, Any]]:
        """Return the points of the grid, in the order of trials."""
        points = itertools.product(*self.grid.values())
        return [dict(zip(self.grid, point, strict=True)) for point in points]


@dataclass(frozen=True)
class System:
    """One ranking system.

    Attributes
    ----------
    name : str
        The name on the command line. A system with the name of its ranker is ``space.ranker``.
    ranker : str
        The class.
    module : str
        The module of the class; one that starts with a dot is in ``leanrank.rankers``.
    title : str
        The name in tables.
    paper : str
        The publication.
    space : Space or None
        The search space of ``compare``; None for a class that is for Python only.
    trials : Space or None
        The search space of ``tune``, if it differs.
    tunes : bool
        Whether ``tune`` tries it by default; False if another system finds the same optimum faster,
        or if it chooses its parameters itself.
    curved : mapping or None
        Parameters to vary in the same system with curves, beside those of ``space``; None if there
        is no such system.
    sparse_path : bool
        Whether every trial gives sparse models of many sizes.
    streams : bool
        Whether it learns from data larger than memory.
    cluster : bool
        Whether it fits documents on the workers of a Dask cluster.
    purpose : str
        A few words on when to use it.
    """

    name: str
    ranker: str
    module: str
    title: str
    paper: str
    space: Space | None = None
    trials: Space | None = None
    tunes: bool = True
    curved: Mapping[str, tuple[Any, ...]] | None = None
    sparse_path: bool = False
    streams: bool = False
    cluster: bool = False
    purpose: str = ""

    @property
    def tuning(self) -> Space | None:
        """The search space of ``tune`` by default; None if it leaves the system out."""
        return (self.trials or self.space) if self.tunes else None

    @property
    def tuned_space(self) -> Space:
        """The search space of ``tune`` if the user names the system."""
        space = self.tuning or self.space
        assert space is not None
        return space

    @property
    def own_parameters(self) -> dict[str, Any]:
        """The parameters in which the system differs from the defaults of its class.

        >>> SYSTEMS["ranksvm-l1"].own_parameters, SYSTEMS["ranksvm"].own_parameters
        ({'l1_ratio': 1.0}, {})
        """
        named_by_class = self.space is None or self.space.ranker == self.name
        return {} if named_by_class or self.space is None else dict(self.space.fixed)

    def load(self) -> Any:
        """Return the class."""
        module = f"leanrank.rankers{self.module}" if self.module.startswith(".") else self.module
        return getattr(import_module(module), self.ranker)


CAPABILITIES = {"sparse_path": "sparse path", "streams": "streams", "cluster": "cluster"}
"""Capabilities of systems: attributes, and their titles in tables."""


def shown(system: System, able: str) -> str:
    """Return one of the ``CAPABILITIES`` of a system as text; empty if the system lacks it.

    >>> shown(SYSTEMS["domination"], "cluster"), shown(SYSTEMS["spd"], "cluster")
    ('yes', 'as a stream')
    """
    if able == "cluster" and system.streams:
        return "as a stream"  # the learner reads one partition after the other
    return "yes" if getattr(system, able) else ""


SYSTEMS: dict[str, System] = {}
"""All systems by name."""


def register(system: System) -> None:
    """Add a system to the package and the command line."""
    SYSTEMS[system.name] = system


def ranker_names() -> dict[str, str]:
    """Return the class names of rankers by their names on the command line.

    >>> ranker_names()["rankrls"]
    'RankRLS'
    """
    own = (s for s in SYSTEMS.values() if s.space is not None and s.space.ranker == s.name)
    return {system.name: system.ranker for system in own}


def classes() -> dict[str, System]:
    """Return one system per class, that with the name of the ranker if there are several."""
    return {system.ranker: system for system in reversed(SYSTEMS.values())} | {
        SYSTEMS[name].ranker: SYSTEMS[name] for name in ranker_names()
    }


def get_system(name: str) -> System:
    """Return a system that can be fitted, by name.

    >>> get_system("ranksvm-l1").space.fixed
    {'l1_ratio': 1.0}
    """
    known = [system.name for system in SYSTEMS.values() if system.space is not None]
    if name not in known:
        raise InputError(f"there is no system {name!r}: {suggest(name, known)}")
    return SYSTEMS[name]


def get_ranker(name: str) -> Any:
    """Return the class of a system by its name on the command line.

    >>> get_ranker("rankrls").__name__
    'RankRLS'
    """
    return get_system(name).load()


def decades(low: int, high: int, per_decade: int = 2) -> tuple[float, ...]:
    """Return evenly spaced values on a logarithmic scale, with two digits.

    >>> decades(-1, 1)
    (0.1, 0.32, 1.0, 3.2, 10.0)
    """
    steps = range((high - low) * per_decade + 1)
    return tuple(float(f"{10.0 ** (low + k / per_decade):.2g}") for k in steps)


# A search may end after any setting. So the values of a grid are in the order in which they helped
# most on synthetic data (20 features with lines, ramps or steps; 100 weak ones; 40 correlated ones)
# and on halves of a training part of MQ2008 and of OHSUMED.
_L1 = AlphaPath(n_alphas=20, alpha_min_ratio=1e-3)
_L1_DENSE = AlphaPath(n_alphas=30, alpha_min_ratio=3e-3)
_L1_CURVES = AlphaPath(n_alphas=16, alpha_min_ratio=3e-3)  # weak strengths take most of the time
_CONCAVE = AlphaPath(n_alphas=12, alpha_min_ratio=1e-3)
_L2 = AlphaPath(alphas=decades(-6, 2))
_FTRL = {"eta0": (0.1, 1.0, 10.0), "alpha": (0.03, 0.1, 0.003, 0.01, 0.3)}
_WEAK = {"signs": (0, 1), "repeats": ("never", "progress", "always")}
_SEEDED = {"random_state": 0}
_PASSES = {"epochs": 5, "random_state": 0}
_PER = ("query", "term")


def _with_curves(base: System) -> System:
    """Return the same system with a curve per feature and few features."""
    assert base.space is not None
    assert base.curved is not None
    fixed = {"curves": "auto", "l1_ratio": 1.0, "tol": 1e-5}
    grid = {**base.space.grid, **base.curved, "group_ratio": (0.5, 0.9)}
    return replace(
        base,
        name=f"{base.name}-curves",
        title=f"{base.title}, curves",
        purpose=f"as {base.name}, with a curve per feature",
        space=Space(base.name, fixed, grid, _L1),
        trials=Space(base.name, fixed, grid, _L1_CURVES),
        sparse_path=True,
    )


for _system in (
    System("lean", "LeanRanker", ".lean", "LeanRanker", "leanrank",
        Space("lean", _SEEDED, sweep=Fits(stop_early=False)), Space("lean", _SEEDED, sweep=Front()),
        cluster=True, purpose="the default: a few curves, with automatic choices"),
    System("domination", "DominationRanker", ".systems", "Domination Rank", "Stevens et al. 2013",
        Space("domination", sweep=_L1),
        Space("domination", {"tol": 1e-5},
            {"margin": (None, "scaled"), "l1_ratio": (1.0, 0.8), "normalize": _PER}, _L1_DENSE),
        curved={"normalize": _PER}, sparse_path=True, cluster=True,
        purpose="sparse weights for graded labels, exact and fast"),
    System("ranksvm-l1", "RankSVM", ".systems", "RankSVM ℓ1", "Joachims 2002",
        Space("ranksvm", {"l1_ratio": 1.0}, sweep=_L1),
        Space("ranksvm", {"tol": 1e-5},
            {"importance": (None, "ndcg"), "l1_ratio": (1.0, 0.8), "normalize": _PER}, _L1_DENSE),
        sparse_path=True, cluster=True, purpose="sparse weights by comparing pairs"),
    System("greedyrankrls", "GreedyRankRLS", ".leave_query_out",
        "Greedy RankRLS", "Pahikkala et al. 2010",
        Space("greedyrankrls", grid={"alpha": decades(-4, 0)}, sweep=Sizes(50)),
        Space("greedyrankrls", sweep=Sizes(30),
            grid={"alpha": (1e-3, 1.0, 0.1, 0.01, 1e-4), "normalize": ("term", "query")}),
        sparse_path=True, purpose="the best few features, added one by one"),
    System("nonconvex", "NonconvexRankSVM", ".sparse_systems",
        "Non-convex SVM", "Laporte et al. 2014",
        Space("nonconvex", {"tol": 1e-4}, {"penalty": ("lp", "mcp", "log")}, _CONCAVE),
        Space("nonconvex", {"tol": 1e-4},
            {"penalty": ("lp", "log", "mcp"), "loss": ("squared-hinge", "domination")}, _CONCAVE),
        sparse_path=True, cluster=True,
        purpose="even fewer features: penalties that spare large weights"),
    System("listnet", "ListNet", ".systems", "ListNet", "Cao et al. 2007",
        Space("listnet", grid={"target": ("label", "gain")}, sweep=_L1),
        Space("listnet", {"tol": 1e-5}, {"target": ("label", "gain")}, _L1_DENSE), curved={},
        sparse_path=True, cluster=True, purpose="weights from the probability of whole lists"),
    System("minbatsrank", "MinBatSRank", ".stochastic", "MinBatSRank", "Cheng et al. 2018",
        Space("minbatsrank", _SEEDED, _FTRL), streams=True,
        purpose="sparse weights from a stream, rare features included"),
    System("minbatsrank-nonfea", "MinBatSRank", ".stochastic", "Nonfea", "Cheng et al. 2018",
        Space("minbatsrank", {"rates": "uniform", **_SEEDED}, _FTRL), tunes=False, streams=True,
        purpose="as minbatsrank, with one learning rate for all features"),
    System("adarank", "AdaRank", ".boosting", "AdaRank-MAP", "Xu & Li 2007",
        Space("adarank", {"measure": "map"}, _WEAK),
        purpose="boosting single features for MAP"),
    System("adarank-ndcg", "AdaRank", ".boosting", "AdaRank-NDCG", "Xu & Li 2007",
        Space("adarank", {"measure": "ndcg@5"}, _WEAK), tunes=False,
        purpose="boosting single features for NDCG@5"),
    System("rankrls", "RankRLS", ".rankrls", "RankRLS", "Pahikkala et al. 2009",
        Space("rankrls", sweep=_L2), cluster=True,
        purpose="dense weights by least squares on pairs, in one step"),
    System("rankrlscv", "RankRLSCV", ".leave_query_out", "RankRLS, own CV", "Pahikkala et al. 2009",
        Space("rankrlscv", {"alphas": decades(-6, 2)}), tunes=False,
        purpose="as rankrls, its strength chosen by leaving queries out"),
    System("ranksvm-query", "RankSVM", ".systems", "RankSVM by query", "Joachims 2002",
        Space("ranksvm", sweep=_L2), cluster=True,
        purpose="dense weights by comparing pairs, queries count the same"),
    System("ranksvm", "RankSVM", ".systems", "RankSVM", "Joachims 2002",
        Space("ranksvm", {"normalize": "term"}, sweep=_L2),  # every pair, of any query
        curved={"normalize": _PER}, cluster=True,
        purpose="dense weights by comparing pairs, as published"),
    System("ranksvm-hinge", "RankSVM", ".systems", "RankSVM hinge", "Joachims 2002",
        Space("ranksvm", {"normalize": "term", "loss": "hinge", "tol": 1e-3},
            sweep=AlphaPath(alphas=decades(-4, 2))),
        tunes=False, cluster=True, purpose="as ranksvm, with the original hinge loss"),
    System("ranknet", "RankNet", ".systems", "RankNet", "Burges et al. 2005",
        Space("ranknet", sweep=_L2), curved={"normalize": _PER}, cluster=True,
        purpose="dense weights from the probability of pairs"),
    System("rankboost", "RankBoost", ".boosting", "RankBoost", "Freund et al. 2003",
        Space("rankboost", {"n_rounds": 300, "patience": 100},
            {"n_thresholds": (32, 8, 128, None), "normalize": _PER}),
        purpose="boosted thresholds: steps of single features"),
    System("rsrank", "RSRank", ".pairs", "RSRank", "Sun et al. 2009",
        Space("rsrank", _PASSES, {"alpha": (0.0032, 0.1, 0.032, 0.01, 0.001, 3.2e-4, 1e-4),
            "loss": ("hinge", "squared-hinge")}),
        streams=True, purpose="sparse weights from sampled pairs"),
    System("pamir", "PAMIR", ".pairs", "PAMIR", "Grangier & Bengio 2008",
        Space("pamir", _PASSES,
            {"C": (1e-3, 0.1, 0.01, 1e-4, 1.0, 10.0), "average": (False, True)}),
        streams=True, purpose="passive-aggressive updates from sampled pairs"),
    System("spd", "SPD", ".pairs", "SPD", "Sculley 2009",
        Space("spd", _PASSES,
            {"alpha": (1e-3, 1.0, 0.01, 1e-5, 1e-4, 0.1), "loss": ("squared-hinge", "hinge")}),
        streams=True, purpose="stochastic pair descent for very long data"),
    System("lcra", "LCRA", ".pairs", "LCRA", "Tsivtsivadze et al. 2012",
        Space("lcra", {"epochs": 3, "n_steps": 20_000, **_SEEDED},  # a step draws eleven pairs
            {"alpha": (0.01, 1e-3, 1.0, 0.1), "mu": (1e-3, 1e-2, 1e-1)}),
        streams=True, purpose="sparse weights learned in chunks, for streams"),
    System("fenchelrank", "FenchelRank", ".sparse_systems", "FenchelRank", "Lai et al. 2013",
        Space("fenchelrank", {"tol": 1e-4},
            {"radius": (.1, .2, .3, .5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 50.0, 100.0)}),
        tunes=False, cluster=True,
        purpose="sparse weights within an ℓ1 ball, greedy and certified"),
    System("sparserank", "SparseRank", ".sparse_systems", "SparseRank", "Lai et al. 2013",
        Space("sparserank", {"tol": 1e-4}, sweep=_L1),
        tunes=False, cluster=True, purpose="sparse weights by accelerated gradients"),
    System("kernel-rankrls", "KernelRankRLS", ".rankrls", "Kernel RankRLS", "Pahikkala et al. 2009",
        purpose="kernels, for similarities instead of features"),
    System("linear", "LinearRanker", ".linear_ranker", "Any loss and penalty",
        "the one of its parts", cluster=True, purpose="your own loss, penalty and solver"),
    System("topics", "TopicRanker", ".topics", "Topics", "Stevens et al. 2013",
        purpose="several rankings for topics of queries"),
):  # fmt: skip
    register(_system)
    if _system.curved is not None:
        register(_with_curves(_system))
