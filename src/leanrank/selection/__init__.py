"""Choosing models: what to try for each system, choosing on validation data, comparing systems."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.registry import AlphaPath as AlphaPath
    from leanrank.registry import Fits as Fits
    from leanrank.registry import Sizes as Sizes
    from leanrank.registry import Space as Space
    from leanrank.selection.comparison.compare import ComparedSet as ComparedSet
    from leanrank.selection.comparison.compare import compare_systems as compare_systems
    from leanrank.selection.comparison.systems import fit_system as fit_system
    from leanrank.selection.comparison.systems import system_names as system_names
    from leanrank.selection.cross_validation.cross_validate import (
        cross_validate_path as cross_validate_path,
    )
    from leanrank.selection.cross_validation.cross_validate import (
        cross_validate_ranker as cross_validate_ranker,
    )
    from leanrank.selection.cross_validation.result import CrossValidation as CrossValidation
    from leanrank.selection.cross_validation.scorer import RankingScorer as RankingScorer
    from leanrank.selection.cross_validation.splits import QueryKFold as QueryKFold
    from leanrank.selection.stable_features.subsampling import FeatureGroup as FeatureGroup
    from leanrank.selection.stable_features.subsampling import StabilityResult as StabilityResult
    from leanrank.selection.stable_features.subsampling import bootstrap_models as bootstrap_models
    from leanrank.selection.stable_features.subsampling import stability as stability
    from leanrank.selection.tuning.candidate import Candidate as Candidate
    from leanrank.selection.tuning.costs import Costs as Costs
    from leanrank.selection.tuning.front import bootstrap_interval as bootstrap_interval
    from leanrank.selection.tuning.front import choose as choose
    from leanrank.selection.tuning.front import pareto_front as pareto_front
    from leanrank.selection.tuning.search import Progress as Progress
    from leanrank.selection.tuning.study import Study as Study
    from leanrank.selection.tuning.tune import tune as tune
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
        "leanrank.selection.tuning.candidate": "Candidate",
        "leanrank.selection.comparison.compare": "ComparedSet compare_systems",
        "leanrank.selection.tuning.costs": "Costs",
        "leanrank.selection.cross_validation.cross_validate": (
            "cross_validate_path cross_validate_ranker"
        ),
        "leanrank.selection.cross_validation.result": "CrossValidation",
        "leanrank.selection.tuning.front": "bootstrap_interval choose pareto_front",
        "leanrank.selection.cross_validation.scorer": "RankingScorer",
        "leanrank.selection.tuning.search": "Progress",
        "leanrank.selection.cross_validation.splits": "QueryKFold",
        "leanrank.selection.stable_features.subsampling": (
            "FeatureGroup StabilityResult bootstrap_models stability"
        ),
        "leanrank.selection.tuning.study": "Study",
        "leanrank.selection.comparison.systems": "fit_system system_names",
        "leanrank.selection.tuning.tune": "tune",
        "leanrank.selection.validation": "Chosen Split Trial best_trial fit_best run_trials",
    },
)
