"""What a ranking data set is, and how it is read, written, scaled and made up."""

from leanrank._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
