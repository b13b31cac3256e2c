"""Give the style sheet the colours of the figures: query, key, value, output and weight."""

from pathlib import Path

from d2lmini.plotting.theme import PALETTES

NAMES = ("query", "key", "value", "output", "weight")


def write(app, exception) -> None:
    """Write the style sheet, which `page` joins to the others."""
    if exception or app.builder.format != "html":
        return
    light, dark = PALETTES["light"], PALETTES["dark"]
    both = " ".join(f"--{name}: light-dark({light[name]}, {dark[name]});" for name in NAMES)
    text = f"html {{ {both} }}\n"
    for theme, palette in PALETTES.items():  # samples that show a theme in the other one too
        one = " ".join(f"--{name}: {palette[name]};" for name in NAMES)
        text += f".swatch.on-{theme} {{ {one} box-shadow: 0 0 0 .25rem {palette['page']}; }}\n"
    Path(app.outdir, "_static", "colors.css").write_text(text, "utf8")


def setup(app):
    """Register the style sheet."""
    app.connect("build-finished", write, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
