"""The published book: what it has more than the one on this machine stands well in its pages."""

import pytest

from tests.browser.test_every_page import MOST_SHIFT, SHIFT, is_light_and_alone, shuts_nobody_out

# What can be pressed over a page, and the pictures on it: what it is called and how large it is.
BUTTONS = """[...document.querySelectorAll('.bar :is(a, button)')]
    .filter(e => e.checkVisibility({visibilityProperty: true}))
    .map(e => [e.title || e.ariaLabel || e.textContent, ...[e, ...e.querySelectorAll('img')]
        .map(part => part.getBoundingClientRect()).map(box => [box.width, box.height])])"""


@pytest.mark.parametrize("page", ["chapters/02-plain", "404"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_nobody_is_shut_out(visit, published, page, width, scheme):
    """It loads alone and in silence; a finger hits the buttons of its row; nothing jumps."""
    seen = visit(page, width, scheme, base=published)
    tab = seen.tab
    assert tab.evaluate(SHIFT) < MOST_SHIFT
    is_light_and_alone(seen, published)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    buttons = tab.evaluate(BUTTONS)
    for name, target, *pictures in buttons:
        assert min(target) >= 24, name
        assert all(max(picture) <= 24 for picture in pictures), name
    names = {name for name, *_ in buttons}
    if width == 390:  # a phone keeps what is done on a phone
        assert any(name.startswith("Search") for name in names)
        assert not {"Launch on Binder", "Launch on Colab", "Source repository"} & names, names
    tab.evaluate("scrollTo(0, 0)")
    shuts_nobody_out(tab, scheme, width)
