"""Models that the last chapters build and read, made of the attention of this book."""

from d2lmini._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
del attach
