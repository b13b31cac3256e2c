"""Let no script of a page fail because the browser's storage does (see `storage.js`)."""

from pathlib import Path

SCRIPT = Path(__file__).with_suffix(".js").read_text("utf8")


def protect(app, pagename, templatename, context, doctree) -> None:
    """Put the script into the head, before all others; `policy` allows it by its hash."""
    lines = [line for line in SCRIPT.splitlines() if not line.startswith("//")]
    script = "<script>\n" + "\n".join(lines) + "\n</script>"
    context["metatags"] = script + context.get("metatags", "")


def setup(app):
    """Register it to run after those that add to the head."""
    app.connect("html-page-context", protect, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
