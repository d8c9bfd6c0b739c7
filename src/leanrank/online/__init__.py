"""Simulated users, rankers that learn from clicks, interleaving, and estimates from old logs."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
