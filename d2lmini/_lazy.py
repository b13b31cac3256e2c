"""Names that are loaded when they are first used, and say what to install where they cannot be."""

import importlib.util
import sys
from collections.abc import Callable, Iterable
from typing import Any

import lazy_loader  # type: ignore[import-untyped]

WHAT_TO_INSTALL = {
    "torch": "this part of d2lmini needs PyTorch: pip install torch (for a CPU-only build on Linux "
    "see pytorch.org/get-started); everything that takes NumPy arrays works without it",
    "matplotlib": "figures need matplotlib: pip install matplotlib",
}

NEEDS: dict[str, str] = {}  # the names that need a library which may be missing: "d2lmini.Shown"


def attach(
    package: str, stub_of: str, **needs: Iterable[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its stub.

    `needs` names, for each library that may be missing, the names that cannot do without it. Where
    it is missing they are not in ``__all__`` and ``dir()``: what asks for all names (help, Tab,
    ``import *``) finds only what is there. Asked for by name each says what to install:
    ``from d2lmini import MultiHeadAttention`` with an ImportError, ``d2lmini.MultiHeadAttention``
    with an AttributeError, so that ``hasattr`` answers False.
    """
    load, _, everything = lazy_loader.attach_stub(package, stub_of)
    library_of = {name: library for library, names in needs.items() for name in names}
    NEEDS.update({f"{package}.{name}": library for name, library in library_of.items()})
    missing = {library for library in needs if not _found(library)}
    names = [name for name in everything if library_of.get(name) not in missing]

    def get(name: str) -> Any:
        if sys._getframe(1).f_globals.get("__name__", "").startswith("jedi."):
            raise AttributeError(name)  # Tab asks for the kind of each name: nothing is loaded
        try:
            return load(name)
        except (ImportError, AttributeError) as error:
            library = library_of.get(name, "")
            if library not in WHAT_TO_INSTALL or _found(library):
                raise
            # `from package import name` asks from a function of this name; no error is both kinds.
            if sys._getframe(1).f_code.co_name == "_handle_fromlist":
                raise ImportError(WHAT_TO_INSTALL[library], name=library) from error
            raise AttributeError(WHAT_TO_INSTALL[library]) from error

    return get, lambda: [*names], names


def _found(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except (ImportError, ValueError):
        return False
