"""The rankers: scikit-learn estimators, each a named point of loss × penalty × solver."""

import importlib
from typing import TYPE_CHECKING, Any

from leanrank.errors import InputError, suggest
from leanrank.registry import SYSTEMS, classes, ranker_names

if TYPE_CHECKING:
    RANKERS: dict[str, str]
    from leanrank.rankers.base import BaseRanker as BaseRanker
    from leanrank.rankers.boosting import AdaRank as AdaRank
    from leanrank.rankers.boosting import RankBoost as RankBoost
    from leanrank.rankers.greedy_rankrls import GreedyRankRLS as GreedyRankRLS
    from leanrank.rankers.lcra import LCRA as LCRA
    from leanrank.rankers.lean import LeanRanker as LeanRanker
    from leanrank.rankers.linear_ranker import LinearRanker as LinearRanker
    from leanrank.rankers.nonconvex import NonconvexRankSVM as NonconvexRankSVM
    from leanrank.rankers.pairs import PAMIR as PAMIR
    from leanrank.rankers.pairs import SPD as SPD
    from leanrank.rankers.pairs import RSRank as RSRank
    from leanrank.rankers.rankrls import KernelRankRLS as KernelRankRLS
    from leanrank.rankers.rankrls import RankRLS as RankRLS
    from leanrank.rankers.rankrls import RankRLSCV as RankRLSCV
    from leanrank.rankers.stochastic import MinBatSRank as MinBatSRank
    from leanrank.rankers.systems import DominationRanker as DominationRanker
    from leanrank.rankers.systems import FenchelRank as FenchelRank
    from leanrank.rankers.systems import ListNet as ListNet
    from leanrank.rankers.systems import RankNet as RankNet
    from leanrank.rankers.systems import RankSVM as RankSVM
    from leanrank.rankers.systems import SparseRank as SparseRank
    from leanrank.rankers.topics import TopicRanker as TopicRanker


def __getattr__(name: str) -> Any:
    if name == "BaseRanker":
        return importlib.import_module("leanrank.rankers.base").BaseRanker
    if name == "RANKERS":  # the name of each ranker on the command line, and its class
        return ranker_names()
    if name not in classes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return classes()[name].load()


def __dir__() -> list[str]:
    return sorted([*classes(), "BaseRanker", "RANKERS", "get_ranker"])


__all__ = [*classes(), "BaseRanker", "RANKERS", "get_ranker"]


def get_ranker(name: str) -> Any:
    """Return the class of a ranker by its name on the command line.

    >>> get_ranker("rankrls").__name__
    'RankRLS'
    """
    known = ranker_names()
    if name not in known:
        raise InputError(f"there is no algorithm {name!r}: {suggest(name, known)}")
    return SYSTEMS[name].load()
