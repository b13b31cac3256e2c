"""What stands for `IPython.display` in a page: things that know their form, and places for them."""

import base64
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

NUMBERS = count(1)


class Handle:
    """A place where something is shown, and can be shown anew."""

    def __init__(self, show: Callable[..., Any], display_id: Any) -> None:
        self.show = show
        self.display_id = f"d{next(NUMBERS)}" if display_id is True else str(display_id)

    def display(self, *things: Any, **options: Any) -> None:
        """Show something there once more."""
        self.show(*things, display_id=self.display_id, **options)

    def update(self, thing: Any, **options: Any) -> None:
        """Show something else in its place."""
        self.show(thing, display_id=self.display_id, update=True, **options)


class Text:
    """A text in one of the forms of a notebook, given as it is or by the file that holds it."""

    form = "text/plain"

    def __init__(
        self, data: Any = None, url: Any = None, filename: Any = None, **ignored: Any
    ) -> None:
        if url:
            raise ValueError("url: a page loads nothing from elsewhere; give the data itself")
        self.data = Path(filename).read_text("utf8") if filename else data

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": str(self.data), self.form: self.data}


class HTML(Text):
    """A piece of a page."""

    form = "text/html"


class SVG(Text):
    """A drawing."""

    form = "image/svg+xml"


class Markdown(Text):
    """A text with marks, which a page shows as it was written."""

    form = "text/markdown"


class Latex(Text):
    """A formula, which a page shows as it was written."""

    form = "text/latex"


class Code(Text):
    """A program, which a page shows as it was written."""


class JSON(Text):
    """Nested lists and names, which a page writes out."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        whole = json.loads(self.data) if isinstance(self.data, str) else self.data
        return {"text/plain": json.dumps(whole, indent=2, ensure_ascii=False, default=repr)}


class Math(Latex):
    """A formula without its dollars."""

    def __init__(self, data: str, **ignored: Any) -> None:
        super().__init__(f"${data.strip('$')}$")


class Image(Text):
    """A picture, as bytes or by its file."""

    def __init__(
        self, data: Any = None, url: Any = None, filename: Any = None, **ignored: Any
    ) -> None:
        super().__init__(data, url)
        self.data = Path(filename).read_bytes() if filename else data
        self.form = "image/jpeg" if self.data[:2] == b"\xff\xd8" else "image/png"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": "a picture", self.form: base64.b64encode(self.data).decode()}


def module(runner: Any) -> ModuleType:
    """Return the module that cells import from."""
    made = ModuleType("IPython.display")
    shown = (HTML, SVG, Markdown, Latex, Math, Image, JSON, Code, Text)
    names = [one.__name__ for one in shown[:-1]]

    def missing(name: str) -> Any:
        if name.startswith("_"):  # which Python itself asks for
            raise AttributeError(name)
        raise ImportError(f"of IPython.display a page has {', '.join(names)}, and no {name}")

    made.__getattr__ = missing
    vars(made).update({one.__name__: one for one in shown}, DisplayHandle=Handle, Pretty=Text)
    made.display = runner.display  # type: ignore[attr-defined]
    made.clear_output = lambda wait=False: runner.printed.clear(wait)  # type: ignore[attr-defined]
    made.update_display = lambda thing, *, display_id, **more: runner.display(  # type: ignore[attr-defined]
        thing, display_id=display_id, update=True, **more
    )
    return made
