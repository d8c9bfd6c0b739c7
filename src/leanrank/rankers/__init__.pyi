from leanrank.registry import get_ranker as get_ranker

from .base import BaseRanker as BaseRanker
from .boosting import AdaRank as AdaRank
from .boosting import RankBoost as RankBoost
from .lean import LeanRanker as LeanRanker
from .leave_query_out import GreedyRankRLS as GreedyRankRLS
from .leave_query_out import RankRLSCV as RankRLSCV
from .linear_ranker import LinearRanker as LinearRanker
from .pairs import LCRA as LCRA
from .pairs import PAMIR as PAMIR
from .pairs import SPD as SPD
from .pairs import RSRank as RSRank
from .rankrls import KernelRankRLS as KernelRankRLS
from .rankrls import RankRLS as RankRLS
from .sparse_systems import FenchelRank as FenchelRank
from .sparse_systems import NonconvexRankSVM as NonconvexRankSVM
from .sparse_systems import SparseRank as SparseRank
from .stochastic import MinBatSRank as MinBatSRank
from .systems import DominationRanker as DominationRanker
from .systems import ListNet as ListNet
from .systems import RankNet as RankNet
from .systems import RankSVM as RankSVM
from .topics import TopicRanker as TopicRanker

RANKERS: dict[str, str]
