"""The model file: a fitted ranker as a small JSON document; reading it executes nothing."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
