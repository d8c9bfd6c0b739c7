"""Checks that an export, or a user's own engine, computes the scores of a model."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.model.verify.agreement import Agreement as Agreement
    from leanrank.model.verify.agreement import compare_scores as compare_scores
    from leanrank.model.verify.emulator import float32_scores as float32_scores
    from leanrank.model.verify.engines import verify_export as verify_export
    from leanrank.model.verify.engines import verify_logged as verify_logged
    from leanrank.model.verify.logged import read_logged as read_logged

__getattr__, __dir__, __all__ = attach(
    "leanrank.model.verify",
    {
        "leanrank.model.verify.agreement": "Agreement compare_scores",
        "leanrank.model.verify.emulator": "float32_scores",
        "leanrank.model.verify.engines": "verify_export verify_logged",
        "leanrank.model.verify.logged": "read_logged",
    },
)
