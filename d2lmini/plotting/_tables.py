"""The style and the script that tables carry with them; a page of the book loads them as files."""

from functools import cache
from pathlib import Path

HERE = Path(__file__).parent


@cache
def table_style() -> str:
    """Return the style of the tables, the same in every output."""
    return f"<style>{(HERE / 'tables.css').read_text('utf8')}</style>"


@cache
def explorer_script() -> str:
    """Return the script of the explorer, the same in every output."""
    return f"<script>{(HERE / 'explorer.mjs').read_text('utf8')}</script>"
