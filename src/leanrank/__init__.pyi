from . import checks as checks
from . import data as data
from . import errors as errors
from . import metrics as metrics
from . import model as model
from . import online as online
from . import plots as plots
from . import rankers as rankers
from . import registry as registry
from . import report as report
from . import selection as selection
from ._version import __version__ as __version__
from .data import RankingData as RankingData
from .data import dump_letor as dump_letor
from .data import from_frame as from_frame
from .data import load_letor as load_letor
from .data import make_ranking as make_ranking
from .metrics.comparison import compare as compare
from .metrics.evaluation import evaluate as evaluate
from .model import load_model as load_model
from .plots.charts import plot as plot
from .rankers import LCRA as LCRA  # moved
from .rankers import PAMIR as PAMIR  # moved
from .rankers import SPD as SPD  # moved
from .rankers import AdaRank as AdaRank  # moved
from .rankers import DominationRanker as DominationRanker  # moved
from .rankers import FenchelRank as FenchelRank  # moved
from .rankers import GreedyRankRLS as GreedyRankRLS  # moved
from .rankers import KernelRankRLS as KernelRankRLS  # moved
from .rankers import LeanRanker as LeanRanker
from .rankers import LinearRanker as LinearRanker
from .rankers import ListNet as ListNet  # moved
from .rankers import MinBatSRank as MinBatSRank  # moved
from .rankers import NonconvexRankSVM as NonconvexRankSVM  # moved
from .rankers import RankBoost as RankBoost  # moved
from .rankers import RankNet as RankNet  # moved
from .rankers import RankRLS as RankRLS  # moved
from .rankers import RankRLSCV as RankRLSCV  # moved
from .rankers import RankSVM as RankSVM  # moved
from .rankers import RSRank as RSRank  # moved
from .rankers import SparseRank as SparseRank  # moved
from .rankers import TopicRanker as TopicRanker  # moved
from .rankers.knots import RampFeatures as RampFeatures
from .report.contents import write_report as write_report
from .selection.fuse import fuse as fuse
from .selection.tuning import tune as tune
from .service.check import check as check
from .service.diff import diff as diff
from .service.refit import refit as refit
