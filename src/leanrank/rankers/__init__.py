"""The rankers: scikit-learn estimators, each a named point of loss × penalty × solver."""

from typing import TYPE_CHECKING, Any

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.rankers.adarank import AdaRank as AdaRank
    from leanrank.rankers.base import BaseRanker as BaseRanker
    from leanrank.rankers.domination import DominationRanker as DominationRanker
    from leanrank.rankers.fenchelrank import FenchelRank as FenchelRank
    from leanrank.rankers.greedy_rankrls import GreedyRankRLS as GreedyRankRLS
    from leanrank.rankers.kernel_rankrls import KernelRankRLS as KernelRankRLS
    from leanrank.rankers.lcra import LCRA as LCRA
    from leanrank.rankers.listnet import ListNet as ListNet
    from leanrank.rankers.minbatsrank import MinBatSRank as MinBatSRank
    from leanrank.rankers.nonconvex import NonconvexRankSVM as NonconvexRankSVM
    from leanrank.rankers.pamir import PAMIR as PAMIR
    from leanrank.rankers.pamir_retrieval import PAMIRRetriever as PAMIRRetriever
    from leanrank.rankers.rankboost import RankBoost as RankBoost
    from leanrank.rankers.ranknet import RankNet as RankNet
    from leanrank.rankers.rankrls import RankRLS as RankRLS
    from leanrank.rankers.rankrls_cv import RankRLSCV as RankRLSCV
    from leanrank.rankers.ranksvm import RankSVM as RankSVM
    from leanrank.rankers.rsrank import RSRank as RSRank
    from leanrank.rankers.sparserank import SparseRank as SparseRank
    from leanrank.rankers.spd import SPD as SPD
    from leanrank.rankers.topics import TopicRanker as TopicRanker

RANKERS: dict[str, str] = {
    "lcra": "LCRA",
    "rsrank": "RSRank",
    "spd": "SPD",
    "domination": "DominationRanker",
    "fenchelrank": "FenchelRank",
    "greedyrankrls": "GreedyRankRLS",
    "minbatsrank": "MinBatSRank",
    "rankrls": "RankRLS",
    "ranksvm": "RankSVM",
    "rankrlscv": "RankRLSCV",
    "listnet": "ListNet",
    "ranknet": "RankNet",
    "nonconvex": "NonconvexRankSVM",
    "sparserank": "SparseRank",
    "rankboost": "RankBoost",
    "adarank": "AdaRank",
    "pamir": "PAMIR",
}
"""The name of each ranker on the command line, and its class here."""

_modules = {
    "LCRA": "leanrank.rankers.lcra",
    "RSRank": "leanrank.rankers.rsrank",
    "SPD": "leanrank.rankers.spd",
    "BaseRanker": "leanrank.rankers.base",
    "DominationRanker": "leanrank.rankers.domination",
    "FenchelRank": "leanrank.rankers.fenchelrank",
    "GreedyRankRLS": "leanrank.rankers.greedy_rankrls",
    "KernelRankRLS": "leanrank.rankers.kernel_rankrls",
    "MinBatSRank": "leanrank.rankers.minbatsrank",
    "RankRLS": "leanrank.rankers.rankrls",
    "RankSVM": "leanrank.rankers.ranksvm",
    "SparseRank": "leanrank.rankers.sparserank",
    "ListNet": "leanrank.rankers.listnet",
    "RankNet": "leanrank.rankers.ranknet",
    "NonconvexRankSVM": "leanrank.rankers.nonconvex",
    "TopicRanker": "leanrank.rankers.topics",
    "RankRLSCV": "leanrank.rankers.rankrls_cv",
    "RankBoost": "leanrank.rankers.rankboost",
    "AdaRank": "leanrank.rankers.adarank",
    "PAMIR": "leanrank.rankers.pamir",
    "PAMIRRetriever": "leanrank.rankers.pamir_retrieval",
}
__getattr__, __dir__, _names = attach("leanrank.rankers", _modules)
__all__ = [*_names, "RANKERS", "get_ranker"]


def get_ranker(name: str) -> Any:
    """Give the class of a ranker by its name on the command line.

    >>> get_ranker("rankrls").__name__
    'RankRLS'
    """
    if name not in RANKERS:
        import difflib

        from leanrank.errors import InputError

        near = difflib.get_close_matches(name, RANKERS, 1)
        hint = (
            f"did you mean {near[0]!r}?" if near else "choose one of " + ", ".join(sorted(RANKERS))
        )
        raise InputError(f"there is no algorithm {name!r}: {hint}")
    return __getattr__(RANKERS[name])
