"""Give the style sheet the colours of the figures: query, key, value, output and weight."""

from pathlib import Path

from d2lmini.plotting.theme import PALETTES

NAMES = ("query", "key", "value", "output", "weight")
DARK = "html[data-theme=dark]"
# Without JavaScript the theme stays "auto", and the system's setting counts.
AUTO = "@media (prefers-color-scheme: dark) {{ html[data-theme=auto] {} }}"


def variables(theme: str) -> str:
    """Return the block that defines the colours of a theme."""
    lines = [f"--{name}: {PALETTES[theme][name]};" for name in NAMES]
    return f"{{ {' '.join(lines)} }}"


def write(app, exception) -> None:
    """Write the style sheet, which `lean` joins to the others."""
    if not exception and app.builder.format == "html":
        dark = variables("dark")
        text = f"html {variables('light')}\n{DARK} {dark}\n{AUTO.format(dark)}\n"
        for theme, palette in PALETTES.items():  # samples that show a theme in the other one too
            text += f".swatch.on-{theme} {variables(theme)}\n"
            text += f".swatch.on-{theme} {{ box-shadow: 0 0 0 .25rem {palette['page']}; }}\n"
        Path(app.outdir, "_static", "colors.css").write_text(text, "utf8")


def setup(app):
    """Register the style sheet."""
    app.connect("build-finished", write, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
