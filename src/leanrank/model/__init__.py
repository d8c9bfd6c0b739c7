"""The model file: a fitted ranker as a small JSON document; reading it executes nothing."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.model.curves import Curve as Curve
    from leanrank.model.curves import Line as Line
    from leanrank.model.curves import Ramps as Ramps
    from leanrank.model.curves import Steps as Steps
    from leanrank.model.model import Model as Model
    from leanrank.model.provenance import fingerprint as fingerprint
    from leanrank.model.provenance import make_provenance as make_provenance
    from leanrank.model.reading import load_model as load_model
    from leanrank.model.writing import save_model as save_model

__getattr__, __dir__, __all__ = attach(
    "leanrank.model",
    {
        "leanrank.model.curves": "Curve Line Ramps Steps",
        "leanrank.model.model": "Model",
        "leanrank.model.provenance": "fingerprint make_provenance",
        "leanrank.model.reading": "load_model",
        "leanrank.model.writing": "save_model",
    },
)
