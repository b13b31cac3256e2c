"""Say under the promise of each chapter, in words, how its notebook is run.

The buttons over a page are icons, and a phone has no room for them. This is a line of links that
every reader sees: the notebook itself, the places that run it in a browser once the book has an
address, and the command that opens it where the book has been copied to.
"""

import html
import re

PROMISE = re.compile(r'<p class="promise">.*?</p>', re.DOTALL)
HERE = (
    "or open it in a copy of this book with <code>make lab</code> "
    '(<a href="{how}">how that is done</a>)'
)


def ways(context) -> list[tuple[str, str]]:
    """Return the words and the address of each place that a button over the page leads to."""
    found = []
    for button in context.get("header_buttons", []):
        if button.get("label") == "download-source-button":
            found.insert(0, ("download the notebook", button["url"]))
        elif button.get("text") in ("Colab", "Binder"):
            found.append((f"run it on {button['text']}", button["url"]))
    return found


def say_how(app, pagename, templatename, context, doctree) -> None:
    """Write the line into the page of a notebook."""
    body = context.get("body", "")
    if app.builder.name != "html" or not str(app.env.doc2path(pagename)).endswith(".ipynb"):
        return
    links = [
        f'<a href="{html.escape(url)}"{" download" if number == 0 else ""}>{words}</a>'
        for number, (words, url) in enumerate(ways(context))
    ]
    how = f"{context['pathto']('chapters/index')}#how-to-run-it"
    line = f"<strong>Run this chapter:</strong> {', '.join([*links, HERE.format(how=how)])}."
    place = PROMISE.search(body)
    if place:
        line = f'\n<p class="run" id="run-this-chapter">{line}</p>'
        context["body"] = body[: place.end()] + line + body[place.end() :]


def setup(app):
    """Register the line."""
    app.connect("html-page-context", say_how, priority=920)  # when promises and buttons are there
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
