"""Ranking measures in named conventions, comparisons of rankers, TREC run and qrels files."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
