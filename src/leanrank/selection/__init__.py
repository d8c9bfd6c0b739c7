"""Choosing models: what to try for each system, choosing on validation data, comparing systems."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
