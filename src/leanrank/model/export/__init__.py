"""Exports: a model as code or data for the system that computes rankings."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
