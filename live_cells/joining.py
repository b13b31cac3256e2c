"""Make one module of several, so that a page asks for one file and not for one after the other.

Ours import by name and export functions, constants and classes; each becomes a function that is
called once and gives what it exports. Comments and indentation, which are for who reads the code,
stay behind.
"""

import re
from collections.abc import Mapping
from pathlib import Path

IMPORT = re.compile(r'^import (?:\* as (\w+)|(\{[^}]*\})) from "\./(\w+)\.mjs";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)
SAID = re.compile(r"^[ \t]*(?://.*|/\*\*.*\*/)$\n?|^\n|^[ \t]+", re.MULTILINE)
LEFT = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)

# A page from a folder on a disk, or in a frame without an origin, may load no module. Then nothing
# there promises what cannot run.
LOADER = """<script>
{{
  const off = () => document.documentElement.classList.add("live-off");
  const load = () => import("{module}").catch(off);
  if (origin.startsWith("http")) {start} else off();
}}
</script>"""
AT_ONCE = "load();"
# When a reader comes near one of the parts of the page, about a screen before it is seen.
WHEN_NEAR = """{
    const near = new IntersectionObserver((seen) => {
      if (seen.some((one) => one.isIntersecting)) { near.disconnect(); load(); }
    }, { rootMargin: "1000px" });
    for (const one of document.querySelectorAll("PARTS")) near.observe(one);
  }"""


def joined(folder: Path, entry: str, made: Mapping[str, str] | None = None) -> str:
    """Return the text of a module with all that it imports from a folder.

    Parameters
    ----------
    folder : Path
    entry : str
        The text of the module.
    made : mapping of str
        Texts of modules that are in no file, by name.

    Raises
    ------
    ValueError
        For an import or an export of another form.
    """
    done: dict[str, str] = {}

    def inside(text: str) -> str:
        """Put what a module imports before it, and return it as the inside of a function."""
        for _, _, name in IMPORT.findall(text):
            if name not in done:
                source = (made or {}).get(name) or (folder / f"{name}.mjs").read_text("utf8")
                exported = f"return {{ {', '.join(EXPORT.findall(source))} }};"
                done[name] = f"const ${name} = (() => {{\n{inside(source)}{exported}\n}})();\n"
        text = IMPORT.sub(lambda found: f"const {found[1] or found[2]} = ${found[3]};", text)
        text = EXPORT.sub("", text)
        if left := LEFT.search(text):
            raise ValueError(f"cannot join: {left[0]}")
        return text

    last = inside(entry)
    return SAID.sub("", "".join([*done.values(), last]))
