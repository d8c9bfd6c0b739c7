"""Exports: a model written for the system that computes rankings with it."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
