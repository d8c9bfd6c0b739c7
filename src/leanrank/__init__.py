"""Learn small, fast ranking functions from large data, and put them to work."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
