"""The rankers: scikit-learn estimators, each a named point of loss × penalty × solver."""

from typing import TYPE_CHECKING, Any

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.rankers.base import BaseRanker as BaseRanker
    from leanrank.rankers.boosting.adarank import AdaRank as AdaRank
    from leanrank.rankers.boosting.rankboost import RankBoost as RankBoost
    from leanrank.rankers.first_order.fenchelrank import FenchelRank as FenchelRank
    from leanrank.rankers.first_order.rsrank import RSRank as RSRank
    from leanrank.rankers.first_order.sparserank import SparseRank as SparseRank
    from leanrank.rankers.least_squares.greedy_rankrls import GreedyRankRLS as GreedyRankRLS
    from leanrank.rankers.least_squares.kernel_rankrls import KernelRankRLS as KernelRankRLS
    from leanrank.rankers.least_squares.rankrls import RankRLS as RankRLS
    from leanrank.rankers.least_squares.rankrls_cv import RankRLSCV as RankRLSCV
    from leanrank.rankers.newton.domination import DominationRanker as DominationRanker
    from leanrank.rankers.newton.listnet import ListNet as ListNet
    from leanrank.rankers.newton.nonconvex import NonconvexRankSVM as NonconvexRankSVM
    from leanrank.rankers.newton.ranknet import RankNet as RankNet
    from leanrank.rankers.newton.ranksvm import RankSVM as RankSVM
    from leanrank.rankers.sampling.lcra import LCRA as LCRA
    from leanrank.rankers.sampling.minbatsrank import MinBatSRank as MinBatSRank
    from leanrank.rankers.sampling.pamir import PAMIR as PAMIR
    from leanrank.rankers.sampling.pamir_retrieval import PAMIRRetriever as PAMIRRetriever
    from leanrank.rankers.sampling.spd import SPD as SPD
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
    "LCRA": "leanrank.rankers.sampling.lcra",
    "RSRank": "leanrank.rankers.first_order.rsrank",
    "SPD": "leanrank.rankers.sampling.spd",
    "BaseRanker": "leanrank.rankers.base",
    "DominationRanker": "leanrank.rankers.newton.domination",
    "FenchelRank": "leanrank.rankers.first_order.fenchelrank",
    "GreedyRankRLS": "leanrank.rankers.least_squares.greedy_rankrls",
    "KernelRankRLS": "leanrank.rankers.least_squares.kernel_rankrls",
    "MinBatSRank": "leanrank.rankers.sampling.minbatsrank",
    "RankRLS": "leanrank.rankers.least_squares.rankrls",
    "RankSVM": "leanrank.rankers.newton.ranksvm",
    "SparseRank": "leanrank.rankers.first_order.sparserank",
    "ListNet": "leanrank.rankers.newton.listnet",
    "RankNet": "leanrank.rankers.newton.ranknet",
    "NonconvexRankSVM": "leanrank.rankers.newton.nonconvex",
    "TopicRanker": "leanrank.rankers.topics",
    "RankRLSCV": "leanrank.rankers.least_squares.rankrls_cv",
    "RankBoost": "leanrank.rankers.boosting.rankboost",
    "AdaRank": "leanrank.rankers.boosting.adarank",
    "PAMIR": "leanrank.rankers.sampling.pamir",
    "PAMIRRetriever": "leanrank.rankers.sampling.pamir_retrieval",
}
__getattr__, __dir__, _names = attach("leanrank.rankers", _modules)
__all__ = [*_names, "RANKERS", "get_ranker"]


def get_ranker(name: str) -> Any:
    """Give the class of a ranker by its name on the command line.

    >>> get_ranker("rankrls").__name__
    'RankRLS'
    """
    if name not in RANKERS:
        from leanrank.errors import InputError, suggest

        raise InputError(f"there is no algorithm {name!r}: {suggest(name, RANKERS)}")
    return __getattr__(RANKERS[name])
