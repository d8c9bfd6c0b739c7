"""Model selection: search, cross-validation, choice on validation data, comparison of systems."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
