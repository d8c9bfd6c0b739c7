"""Models: fitted rankers as small JSON documents; reading one executes nothing."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
