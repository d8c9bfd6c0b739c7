"""Charts of models and studies, for notebooks and reports."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
