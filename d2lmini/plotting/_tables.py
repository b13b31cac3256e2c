"""The style and the script that tables carry with them; a page of the book loads them as files."""

from functools import cache
from pathlib import Path

HERE = Path(__file__).parent


@cache
def table_style(name: str = "tables.css") -> str:
    """Return a style of this folder, the same in every output."""
    return f"<style>{(HERE / name).read_text('utf8')}</style>"


@cache
def script(name: str) -> str:
    """Return a script of this folder, the same in every output."""
    return f"<script>{(HERE / name).read_text('utf8')}</script>"
