"""Charts of models and of what chose them, for notebooks and for the report."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
