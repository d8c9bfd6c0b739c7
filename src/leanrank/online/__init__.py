"""Simulated users, learning from clicks, interleaving, and counterfactual evaluation."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
