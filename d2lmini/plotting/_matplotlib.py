"""Imported before matplotlib by a module that draws, to say what to install where it is missing."""

from d2lmini.plotting.theme import needs_matplotlib

with needs_matplotlib():
    import matplotlib  # noqa: F401
