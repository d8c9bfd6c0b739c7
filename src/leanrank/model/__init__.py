"""The model file: a fitted ranker as a small JSON document; reading it executes nothing."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.model.base import Model as Model
    from leanrank.model.boosted import BoostedModel as BoostedModel
    from leanrank.model.linear import LinearModel as LinearModel
    from leanrank.model.provenance import fingerprint as fingerprint
    from leanrank.model.provenance import make_provenance as make_provenance
    from leanrank.model.reading import load_model as load_model
    from leanrank.model.writing import save_model as save_model

__getattr__, __dir__, __all__ = attach(
    "leanrank.model",
    {
        "leanrank.model.base": "Model",
        "leanrank.model.boosted": "BoostedModel",
        "leanrank.model.linear": "LinearModel",
        "leanrank.model.provenance": "fingerprint make_provenance",
        "leanrank.model.reading": "load_model",
        "leanrank.model.writing": "save_model",
    },
)
