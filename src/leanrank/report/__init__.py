"""Reports: one HTML file about a study, its models and its data."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
