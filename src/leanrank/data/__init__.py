"""Ranking data sets: reading, writing, scaling and synthetic data."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
