"""What the live cells know of the library of their book: another book writes this file anew."""

from d2lmini import models, plotting  # noqa: F401, which tell NEEDS what they need
from d2lmini._lazy import NEEDS

PACKED = ("d2lmini", "array_api_compat", "lazy_loader")  # what the page's Python gets
# Folders and files of them that no cell of a page imports: what needs PyTorch, a shell, or pytest.
LEFT_OUT = {"torch", "cupy", "dask", "tests", "__pycache__", "README.md", "distributed.py"}
LEFT_OUT |= {"__main__.py", "notebook.py", "plugin.py", "translator.py", "training.py"}
# What reads the large files, by what is imported: they come when it is used.
MODELS = ("d2lmini.models", "d2lmini.names", "d2lmini.NameEncoder", "d2lmini.exercises.speak")
KEPT = "D2LMINI_ANSWERS"  # the variable in which the library finds what pages have kept, as JSON
# Together these import what a first Run imports: a cell that draws, and one that checks.
FIRST_RUNS = (
    'from d2lmini.plotting import show_heatmaps\nshow_heatmaps([[1.0]], "Keys", "Queries")',
    "import d2lmini\nfrom d2lmini.exercises import check\ncheck",
)


def library_of(thing: str) -> str:
    """Return the library, not in every browser, that an imported thing needs, or nothing.

    >>> library_of("torch.nn"), library_of("d2lmini.SelfAttention"), library_of("numpy")
    ('torch', 'torch', '')
    >>> library_of("d2lmini.plotting.show_heatmaps")
    'matplotlib'
    """
    root = thing.partition(".")[0]
    if root == "subprocess":  # no browser starts a process, and ours are PyTorch's
        return "torch"
    return root if root in ("torch", "matplotlib") else NEEDS.get(thing, "")
