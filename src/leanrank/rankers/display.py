"""A ranker as a notebook shows it: its weights once it is fitted."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr

from leanrank.errors import ModelError
from leanrank.model.display import weights_html


def ranker_html(ranker: Any) -> str:
    """Show the weights of a fitted ranker; of others, what scikit-learn shows."""
    try:
        model = ranker.to_model()
    except (NotFittedError, ModelError):  # nothing learned yet, or nothing linear
        return str(estimator_html_repr(ranker))
    changed = repr(ranker).removeprefix(type(ranker).__name__).strip("()")
    return weights_html(model, type(ranker).__name__, " ".join(changed.split()))
