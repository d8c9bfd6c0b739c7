"""``-p patience=N``: validation data that tell a ranker when to stop, and which model to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.data import RankingData


def check_patience(ranker: Any, vali: str | None) -> None:
    """Reject ``patience`` when there are no validation data to stop by."""
    patience = getattr(ranker, "patience", None)
    if patience is not None and vali is None and not getattr(ranker, "stops_by_training", False):
        raise InputError(
            f"-p patience={patience} waits for a better measure on validation data: add --vali "
            "FILE, or leave it out"
        )


def stopping_data(ranker: Any, validation: RankingData | None) -> RankingData | None:
    """Return the validation data for a ranker that was told to stop by them."""
    return None if getattr(ranker, "patience", None) is None else validation


def kept(ranker: Any, validation: RankingData | None) -> str:
    """Describe which part of a run became the model; empty without validation data."""
    if validation is None:
        return ""
    best = getattr(ranker, "best_epoch_", ranker.n_iter_)
    unit = "round" if hasattr(ranker, "n_rounds") else "pass"
    run = len(ranker.history_)
    return f"{unit} {best:,} of {run:,}, the best by {ranker.measure} on the validation data"
