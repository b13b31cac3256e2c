"""Check functions from the shell: ``python -m d2lmini.testing MODULE:FUNCTION…``."""

import argparse
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from d2lmini._terminal import careful_output, command
from d2lmini.testing import Report, check_attention
from d2lmini.testing.subject import LAYOUTS, MEANINGS

__all__ = ["conventions", "found", "main"]


def found(name: str) -> Callable[..., Any]:
    """Return the function that ``module:function`` or ``file.py:function`` names.

    Raises
    ------
    ValueError
        In words, if there is none.

    Examples
    --------
    >>> found("d2lmini:attention").__name__
    'attention'
    """
    place, colon, function = name.partition(":")
    if not colon or not function:
        raise ValueError(f"{name!r} should be module:function, as in mypackage.layers:attention")
    path = Path(place).resolve()
    if place.endswith(".py") and not path.is_file():
        raise ValueError(f"there is no file {place}")
    sys.path.insert(0, str(path.parent if place.endswith(".py") else Path.cwd()))
    try:
        thing: Any = _file(path) if place.endswith(".py") else importlib.import_module(place)
    except (Exception, SystemExit) as error:  # some end the program where they should not
        why = error if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"{place} cannot be imported: {why}") from error
    finally:
        sys.path.pop(0)
    for part in function.split("."):
        if not hasattr(thing, part):
            raise ValueError(f"{place} has no {function}")
        thing = getattr(thing, part)
    if not callable(thing):
        raise ValueError(f"{name} is no function, but {type(thing).__name__}")
    if isinstance(thing, type):
        raise ValueError(f"{name} is a class: name a function, or an object made of it")
    return thing


def _file(path: Path) -> ModuleType:
    """Import this file, even if another of its name has been imported."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def conventions(parser: argparse.ArgumentParser) -> None:
    """Add the conventions that can be said on a command line."""
    parser.add_argument("--arrays", choices=("numpy", "torch", "jax"))
    parser.add_argument("--layout", choices=[*LAYOUTS])
    parser.add_argument("--mask", choices=[*MEANINGS])
    parser.add_argument("--corner", choices=("bottom-right", "top-left"), default="bottom-right")
    parser.add_argument("--no-keys", choices=("zero", "any"), default="zero")
    parser.add_argument("--shared-heads", choices=("neighbours", "turns"), default="neighbours")
    parser.add_argument("--always-causal", action="store_const", const=True)
    parser.add_argument("--width", type=int)
    parser.add_argument("--heads", type=int)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check what is named, print what is broken, and return 1 if anything is, 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m d2lmini.testing",
        description="Run the invariants of attention on your own functions.",
    )
    parser.add_argument("functions", nargs="+", metavar="module:function")
    parser.add_argument("--json", action="store_true", help="print JSON, one line a function")
    conventions(parser)
    asked = vars(parser.parse_args(arguments))
    as_json, names = asked.pop("json"), asked.pop("functions")
    careful_output()
    broken = False
    for name in names:
        try:
            report: Report = check_attention(found(name), **asked)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
        print(report.to_json() if as_json else report)
        broken = broken or bool(report)
    return int(broken)


if __name__ == "__main__":
    sys.exit(command(main))
