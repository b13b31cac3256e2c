"""Cells of a notebook that run on its page, in the reader's browser: an extension of Sphinx.

The page's Python has this package too, without Sphinx: so nothing is imported before `setup`.
"""


def setup(app):
    """Register the extension."""
    from live_cells import extension

    return extension.setup(app)
