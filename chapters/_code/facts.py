"""What the book says of itself, read from its own files while it is built: Markdown for its pages.

Each is a function here, which gets the settings of the book and the lines of the block:

    ```{facts} pins
    numpy
    ```
"""

import json
import re
from pathlib import Path

import nbformat
import yaml

from d2lmini.models import MiniLMLayer

ROOT = Path(__file__).resolve().parents[2]
PINS, CITATION = ROOT / "requirements.txt", ROOT / "CITATION.cff"
NOTEBOOKS = sorted((ROOT / "chapters").glob("*.ipynb"))
STORED_WITH = ROOT / "chapters/stored-with.json"
PUBLIC = ROOT / "benchmarks/public.json"  # written by benchmarks/public.py
VERSIONS = ROOT / "chapters/versions.json"  # written by scripts/versions.py
# The files that facts are made of.
READS = (PINS, CITATION, STORED_WITH, PUBLIC, VERSIONS, *NOTEBOOKS)
CAPTION = re.compile(r"^\*\*Figure \d", re.MULTILINE)


def table(head: tuple, *rows: tuple) -> str:
    """Return a table in Markdown, the numbers at the right."""
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (head, rule, *rows))


def pins(settings, names: list[str]) -> str:
    """Return the pinned versions of the packages that are named, one on each line."""
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", PINS.read_text("utf8"), re.MULTILINE))
    if missing := [name for name in names if name not in pinned]:
        raise ValueError(f"not in requirements.txt: {', '.join(missing)}")
    return table(("package", "version"), *((name, pinned[name]) for name in names))


def known_words(settings, lines: list[str]) -> str:
    """Return the words of the layer of MiniLM, in the order of its file: plain ones, then kinds."""
    return ", ".join(MiniLMLayer.load().words)


def chapters(settings, lines: list[str]) -> str:
    """Return what the stored notebooks hold: their cells, outputs, figures and exercises."""
    rows = []
    for path in NOTEBOOKS:
        try:
            cells = nbformat.reads(path.read_text("utf8"), 4).cells
        except Exception:  # the page of this notebook says what is wrong
            continue
        code = [cell for cell in cells if cell.cell_type == "code"]
        outputs = [output for cell in code for output in cell.outputs]
        figures = CAPTION.findall("\n\n".join(cell.source for cell in cells))
        checks = [cell for cell in code if re.search(r"^@check$", cell.source, re.MULTILINE)]
        rows.append((f"[]({path.name})", *map(len, (code, outputs, figures, checks))))
    head = ("chapter", "code cells", "outputs", "figures", "exercises that check themselves")
    return table(head, *rows)


def tested_versions(settings, lines: list[str]) -> str:
    """Return what `make versions` ran the library's tests on, and how many passed and failed."""
    runs = json.loads(VERSIONS.read_text("utf8"))
    return table(("versions", *list(runs[0])[1:]), *(tuple(run.values()) for run in runs))


def stored_with(settings, lines: list[str]) -> str:
    """Return what the stored outputs were made with, and the version of the book."""
    kind, cff = (
        json.loads(STORED_WITH.read_text("utf8")),
        yaml.safe_load(CITATION.read_text("utf8")),
    )
    rows = [
        ("Python", kind["python"]),
        ("operating system", kind["system"]),
        ("kind of processor", kind["processor"]),
        ("version of the book", cff["version"]),
        ("released on", cff["date-released"]),
    ]
    if settings.public["changed"]:
        rows.append(("last changed on", settings.public["changed"]))
    return table(("what", "which"), *rows)


def public_functions(settings, lines: list[str]) -> str:
    """Return which invariants functions that people use keep, as `benchmarks.public` found."""
    rows = []
    for one in json.loads(PUBLIC.read_text("utf8")):
        words = {name: json.dumps(value) for name, value in one["said"].items()}
        said = ", ".join(
            f"`{name}={value.replace('true', 'True')}`" for name, value in words.items()
        )
        broken = "<br>".join(f"`{name}`" for name in one["broken"]) or "–"
        name = f"{one['function']}" + (f" ({one['package']})" if one["package"] else "")
        rows.append((name, said or "–", broken, len(one["held"])))
    return table(("function", "declared", "broken", "held"), *rows).replace(
        "| --- | --: | --: | --: |", "| --- | --- | --- | --: |"
    )


def citing(settings, lines: list[str]) -> str:
    """Return CITATION.cff as an entry of BibTeX; the address is there once the book is public."""
    cff = yaml.safe_load(CITATION.read_text("utf8"))["preferred-citation"]
    authors = [
        author.get("name") or f"{author['family-names']}, {author['given-names']}"
        for author in cff["authors"]
    ]
    fields = {
        "title": f"{{{cff['title']}}}",
        "author": " and ".join(f"{{{author}}}" for author in authors),
        "year": cff["year"],
        "version": str(cff["version"]),
        "url": settings.public["address"],
    }
    entry = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join(["```bibtex", "@misc{queries_keys_values,", *entry, "}", "```"])
