"""Verification that an export, or a user's own engine, computes the scores of a model."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
