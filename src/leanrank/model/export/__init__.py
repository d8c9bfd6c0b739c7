"""Exports: a model written for the system that computes rankings with it."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.model.export.formula import Formula as Formula
    from leanrank.model.export.formula import formula_of as formula_of
    from leanrank.model.export.hybrid import hybrid_weights as hybrid_weights
    from leanrank.model.export.registry import TARGETS as TARGETS
    from leanrank.model.export.registry import export_model as export_model

__getattr__, __dir__, __all__ = attach(
    "leanrank.model.export",
    {
        "leanrank.model.export.formula": "Formula formula_of",
        "leanrank.model.export.hybrid": "hybrid_weights",
        "leanrank.model.export.registry": "TARGETS export_model",
    },
)
