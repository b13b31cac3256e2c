"""Explorables in Chromium: by keyboard, mouse and touch, and what stands there without them."""

import sys

import pytest
from playwright.sync_api import expect

from tests.book.building import ROOT
from tests.browser.test_every_page import ALL_RULES, findings

sys.path.append(str(ROOT / "_ext"))
import explorables

PAGES = {name: page for (page, _), name in explorables.PLACES.items()}
PAGES |= {name: "chapters/index" for name in explorables.STARTS if name not in PAGES}
each = pytest.mark.parametrize("name", explorables.STARTS)


def opened(visit, name, **options):
    """Return a page, and the explorable on it."""
    tab = visit(PAGES[name], **options).tab
    found = tab.locator(f"[data-explorable={name}]")
    expect(found).to_have_attribute("data-state", "ready")
    return tab, found, found.locator(".ex-says")


@each
def test_it_begins_with_the_sentence_of_the_build(visit, name):
    _, found, says = opened(visit, name)
    first = explorables.STARTS[name]().says
    found.page.wait_for_timeout(300)
    assert says.inner_text() == first
    drawing = found.page.locator(".ex-drawing", has=found.page.locator("svg"))
    assert first in [one.get_attribute("aria-label") for one in drawing.all()]


# What a keyboard turns where it is no slider, and with which key.
TURNED = {
    "masks": ("[role=gridcell][tabindex='0']", "Space"),
    "heads": ("input[type=radio]:checked", "ArrowRight"),
}


@each
def test_the_keyboard_moves_it(visit, name):
    tab, found, says = opened(visit, name)
    what, key = TURNED.get(name, ("input", "ArrowRight"))
    control = found.locator(what).last
    before = says.inner_text()
    control.focus()
    for _ in range(29):  # an odd number: what was switched on and off again would not differ
        tab.keyboard.press(key)
    expect(says).not_to_have_text(before)
    if name not in TURNED:
        assert control.get_attribute("aria-valuetext")


@each
def test_without_scripts_its_numbers_are_there(visit, name):
    tab = visit(PAGES[name], java_script_enabled=False).tab
    found = tab.locator(f"[data-explorable={name}]")
    assert found.locator(".ex-numbers").is_visible()
    assert found.locator("input, button").count() == 0


@each
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_shut_out(visit, name, scheme):
    tab, found, _ = opened(visit, name, width=390, scheme=scheme)
    here = f"{{include: [['[data-explorable={name}]']]}}"
    assert findings(tab, ALL_RULES, here) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    for control in found.locator("input, button").all():
        assert control.bounding_box()["height"] >= 24


def test_a_finger_turns_the_query(visit):
    tab, _, says = opened(visit, "lookup", width=390, has_touch=True)
    hand = tab.locator(".ex-hand").bounding_box()
    plane = tab.locator(".ex-drawing svg").first.bounding_box()
    tab.mouse.move(hand["x"] + 4, hand["y"] + 4)
    tab.mouse.down()
    tab.mouse.move(plane["x"] + plane["width"] / 2, plane["y"] + 20, steps=5)
    tab.mouse.up()
    expect(says).to_contain_text("the key (0, 1)")
    touch = "part => getComputedStyle(part).touchAction"
    assert tab.locator("g:has(> .ex-hand)").evaluate(touch) == "none"
    reach = tab.locator("circle[fill=transparent]").bounding_box()
    assert min(reach["width"], reach["height"]) >= 24


def test_a_name_is_answered_at_each_key_press(visit):
    tab, found, says = opened(visit, "names")
    field = found.locator("input[type=text]")
    field.fill("")
    expect(says).to_contain_text("plain average, 55.0")
    heard = []
    for letter in "carm":
        field.press(letter)
        tab.wait_for_timeout(300)
        heard.append(says.inner_text())
    assert "Carmen Ortiz" in heard[-1]
    assert len(set(heard)) == 4


def test_the_path_of_the_point_stays_until_it_is_cleared(visit):
    tab, found, _ = opened(visit, "triangle")
    points = "line => line.getAttribute('points').trim().split(/ +/).length"
    path = found.locator("polyline")
    found.locator("input").first.focus()
    for _ in range(10):
        tab.keyboard.press("ArrowLeft")
    assert path.evaluate(points) == 11
    found.get_by_role("button").click()
    assert path.evaluate(points) == 1
