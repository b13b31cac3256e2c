"""Keep folded, in a notebook, what a cell puts out that the book folds.

Jupyter opens the outputs of each cell that is run, so "Run all" would uncover every answer. It
sends a cell's tags with its code, so here what comes out of a cell tagged ``hide-cell`` is put
into a fold. Errors and warnings stand outside of it. Programs that send no tags, nbconvert for
example, are not concerned.
"""

import io
import sys
from html import escape
from importlib import import_module
from typing import Any

TAG = "hide-cell"
OPEN = '<details class="d2l-kept"><summary style="cursor:pointer">What it gives</summary>'


class Folder:
    """What a cell puts out, from before its first line until after its last."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.usual: tuple[Any, Any, Any] | None = None
        self.printed, self.displayed = io.StringIO(), list[dict[str, Any]]()

    def start(self, info: Any) -> None:
        """Collect what is printed and displayed, if the cell is tagged."""
        parent = self.shell.get_parent() if hasattr(self.shell, "get_parent") else {}
        if TAG not in parent.get("metadata", {}).get("tags", ()):
            return
        shell, self.displayed = self.shell, []
        core: Any = import_module("IPython.core")  # which has no types
        self.usual = sys.stdout, shell.display_pub, shell.display_trap.hook
        sys.stdout = self.printed = io.StringIO()
        shell.display_pub = publisher = core.displaypub.CapturingDisplayPublisher()
        publisher.outputs = self.displayed  # both in the order in which they come
        shell.display_trap.hook = core.displayhook.CapturingDisplayHook(shell, self.displayed)

    def stop(self, result: Any) -> None:
        """Show it in a fold."""
        if self.usual is None:
            return
        sys.stdout, self.shell.display_pub, self.shell.display_trap.hook = self.usual
        self.usual = None
        text, parts = self.printed.getvalue(), []
        if text:
            parts.append(f'<pre style="margin:0">{escape(text)}</pre>')
        parts += [as_html(output["data"]) for output in self.displayed]
        if parts:
            data = {"text/html": f"{OPEN}{''.join(parts)}</details>", "text/plain": "(folded)"}
            self.shell.display_pub.publish(data)


def as_html(data: dict[str, Any]) -> str:
    """Return an output as HTML, in the best form that it has."""
    if "text/html" in data:
        return str(data["text/html"])
    if "image/png" in data:
        return f'<img src="data:image/png;base64,{data["image/png"]}" alt="">'
    return f'<pre style="margin:0">{escape(str(data.get("text/plain", "")))}</pre>'


def fold_tagged_cells() -> None:
    """Do so from now on, in the notebook that this runs in."""
    shell = import_module("IPython").get_ipython()
    if shell is not None and not hasattr(shell, "d2lmini_folder"):
        shell.d2lmini_folder = folder = Folder(shell)
        shell.events.register("pre_run_cell", folder.start)
        shell.events.register("post_run_cell", folder.stop)
