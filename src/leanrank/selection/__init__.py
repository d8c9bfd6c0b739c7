"""Choosing models: what to try for each system, choosing on validation data, comparing systems."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.registry import AlphaPath as AlphaPath
    from leanrank.registry import Fits as Fits
    from leanrank.registry import Sizes as Sizes
    from leanrank.registry import Space as Space
    from leanrank.selection.candidate import Candidate as Candidate
    from leanrank.selection.comparison import ComparedSet as ComparedSet
    from leanrank.selection.comparison import compare_systems as compare_systems
    from leanrank.selection.costs import Costs as Costs
    from leanrank.selection.cross_validation import cross_validate_path as cross_validate_path
    from leanrank.selection.cross_validation import cross_validate_ranker as cross_validate_ranker
    from leanrank.selection.cross_validation_result import CrossValidation as CrossValidation
    from leanrank.selection.front import bootstrap_interval as bootstrap_interval
    from leanrank.selection.front import choose as choose
    from leanrank.selection.front import pareto_front as pareto_front
    from leanrank.selection.scoring import RankingScorer as RankingScorer
    from leanrank.selection.search import Progress as Progress
    from leanrank.selection.splits import QueryKFold as QueryKFold
    from leanrank.selection.stable_features import FeatureGroup as FeatureGroup
    from leanrank.selection.stable_features import StabilityResult as StabilityResult
    from leanrank.selection.stable_features import bootstrap_models as bootstrap_models
    from leanrank.selection.stable_features import stability as stability
    from leanrank.selection.study import Study as Study
    from leanrank.selection.systems import fit_system as fit_system
    from leanrank.selection.systems import system_names as system_names
    from leanrank.selection.tuning import tune as tune
    from leanrank.selection.validation import Chosen as Chosen
    from leanrank.selection.validation import Split as Split
    from leanrank.selection.validation import Trial as Trial
    from leanrank.selection.validation import best_trial as best_trial
    from leanrank.selection.validation import fit_best as fit_best
    from leanrank.selection.validation import run_trials as run_trials

__getattr__, __dir__, __all__ = attach(
    "leanrank.selection",
    {
        "leanrank.registry": "AlphaPath Fits Sizes Space",
        "leanrank.selection.candidate": "Candidate",
        "leanrank.selection.comparison": "ComparedSet compare_systems",
        "leanrank.selection.costs": "Costs",
        "leanrank.selection.cross_validation": "cross_validate_path cross_validate_ranker",
        "leanrank.selection.cross_validation_result": "CrossValidation",
        "leanrank.selection.front": "bootstrap_interval choose pareto_front",
        "leanrank.selection.scoring": "RankingScorer",
        "leanrank.selection.search": "Progress",
        "leanrank.selection.splits": "QueryKFold",
        "leanrank.selection.stable_features": (
            "FeatureGroup StabilityResult bootstrap_models stability"
        ),
        "leanrank.selection.study": "Study",
        "leanrank.selection.systems": "fit_system system_names",
        "leanrank.selection.tuning": "tune",
        "leanrank.selection.validation": "Chosen Split Trial best_trial fit_best run_trials",
    },
)
