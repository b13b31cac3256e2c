"""Pictures of attention: heatmaps, and the look of every figure in the book.

Names are loaded when they are first used, so ``import d2lmini.plotting`` does not load matplotlib.
What there is stands in ``__init__.pyi``.
"""

from d2lmini._lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    __file__,
    matplotlib=[
        "AttentionTrace",
        "Shown",
        "Diagram",
        "Part",
        "show_attention_lines",
        "show_figure",
        "show_heatmaps",
    ],
)
