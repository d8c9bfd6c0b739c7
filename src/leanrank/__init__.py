"""Learn small, fast ranking functions from large data, and put them to work."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach
from leanrank._version import __version__
from leanrank.registry import classes

if TYPE_CHECKING:
    from leanrank.data import RankingData as RankingData
    from leanrank.data import dump_letor as dump_letor
    from leanrank.data import load_letor as load_letor
    from leanrank.data import make_ranking as make_ranking
    from leanrank.metrics.evaluation import evaluate as evaluate
    from leanrank.model import load_model as load_model
    from leanrank.plots.dispatch import plot as plot
    from leanrank.rankers import LCRA as LCRA
    from leanrank.rankers import PAMIR as PAMIR
    from leanrank.rankers import SPD as SPD
    from leanrank.rankers import AdaRank as AdaRank
    from leanrank.rankers import DominationRanker as DominationRanker
    from leanrank.rankers import FenchelRank as FenchelRank
    from leanrank.rankers import GreedyRankRLS as GreedyRankRLS
    from leanrank.rankers import KernelRankRLS as KernelRankRLS
    from leanrank.rankers import LinearRanker as LinearRanker
    from leanrank.rankers import ListNet as ListNet
    from leanrank.rankers import MinBatSRank as MinBatSRank
    from leanrank.rankers import NonconvexRankSVM as NonconvexRankSVM
    from leanrank.rankers import PAMIRRetriever as PAMIRRetriever
    from leanrank.rankers import RankBoost as RankBoost
    from leanrank.rankers import RankNet as RankNet
    from leanrank.rankers import RankRLS as RankRLS
    from leanrank.rankers import RankRLSCV as RankRLSCV
    from leanrank.rankers import RankSVM as RankSVM
    from leanrank.rankers import RSRank as RSRank
    from leanrank.rankers import SparseRank as SparseRank
    from leanrank.rankers import TopicRanker as TopicRanker
    from leanrank.rankers.ramp_features import RampFeatures as RampFeatures
    from leanrank.selection.fusion.fuse import fuse as fuse
    from leanrank.selection.tuning.tune import tune as tune

__getattr__, __dir__, _names = attach(
    "leanrank",
    {
        **{f"leanrank.{room}": room for room in ("checks", "errors", "metrics", "online", "plots")},
        "leanrank.data": "RankingData data dump_letor load_letor make_ranking",
        "leanrank.metrics.evaluation": "evaluate",
        "leanrank.model": "load_model",
        "leanrank.plots.dispatch": "plot",
        "leanrank.rankers": " ".join(classes()),
        "leanrank.rankers.ramp_features": "RampFeatures",
        "leanrank.registry": "registry",
        "leanrank.selection": "selection",
        "leanrank.selection.fusion.fuse": "fuse",
        "leanrank.selection.tuning.tune": "tune",
    },
)
__all__ = [*_names, "__version__"]
