"""Ranking measures in named conventions, comparing two rankers, TREC run and qrels files."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.data.trec import Qrels as Qrels
    from leanrank.data.trec import Run as Run
    from leanrank.data.trec import dump_qrels as dump_qrels
    from leanrank.data.trec import dump_run as dump_run
    from leanrank.data.trec import load_qrels as load_qrels
    from leanrank.data.trec import load_run as load_run
    from leanrank.metrics.comparison import Comparison as Comparison
    from leanrank.metrics.comparison import compare as compare
    from leanrank.metrics.comparison import compare_values as compare_values
    from leanrank.metrics.conventions import CONVENTIONS as CONVENTIONS
    from leanrank.metrics.conventions import Convention as Convention
    from leanrank.metrics.evaluation import Evaluation as Evaluation
    from leanrank.metrics.evaluation import evaluate as evaluate
    from leanrank.metrics.measures import Measure as Measure
    from leanrank.metrics.measures import parse_measures as parse_measures
    from leanrank.metrics.model_size import percent_zero as percent_zero
    from leanrank.metrics.model_size import sparsity as sparsity
    from leanrank.metrics.runs import evaluate_run as evaluate_run

__getattr__, __dir__, __all__ = attach(
    "leanrank.metrics",
    {
        "leanrank.data.trec": "Qrels Run dump_qrels dump_run load_qrels load_run",
        "leanrank.metrics.comparison": "Comparison compare compare_values",
        "leanrank.metrics.conventions": "CONVENTIONS Convention",
        "leanrank.metrics.evaluation": "Evaluation evaluate",
        "leanrank.metrics.measures": "Measure parse_measures",
        "leanrank.metrics.model_size": "percent_zero sparsity",
        "leanrank.metrics.runs": "evaluate_run",
    },
)
