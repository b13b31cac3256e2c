"""Explorables in Chromium: by keyboard, mouse and touch, and what stands there without them."""

from functools import partial

import pytest
from playwright.sync_api import expect

from chapters._code import explorables
from tests.book import checks
from tests.browser.conftest import SETTLED
from tests.browser.test_every_page import ALL_RULES, COLOURS, findings

PAGES = {name: page for name, (page, _) in explorables.PLACES.items()}
each = pytest.mark.parametrize("name", PAGES)
# Whose words stay in the drawing.
WITHIN = ("heads", "training", "museum", "names", "rotary", "tiles", "readings", "told")
# Of the words of a drawing: those that leave it, and those that are small.
OUTSIDE = """root => [...root.querySelectorAll('svg')].flatMap(svg => {
    const room = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')].filter(text => text.textContent.trim()
        && text.getClientRects().length).filter(text => {
        const { left, right } = text.getBoundingClientRect();
        return left < room.left - 1 || right > room.right + 1;
    }).map(text => text.textContent); })"""
# The words of a menu that has no room for all of them, and of a button.
CUT = """root => [...root.querySelectorAll('select')].filter(menu => {
    const copy = menu.parentNode.appendChild(menu.cloneNode(true));
    copy.style = 'position: absolute; width: max-content; max-width: none';
    const wanted = copy.offsetWidth;
    copy.remove();
    return wanted > menu.offsetWidth;
}).map(menu => menu.ariaLabel ?? menu.closest('label').textContent).concat(
    [...root.querySelectorAll('button, .ex-controls label')]
        .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent))"""
# How much of the page it takes, with the figure before it, in whose place it may draw.
ROOM = "root => root.offsetHeight + (root.previousElementSibling?.offsetHeight ?? 0)"
# Those that have not the size of words in figures, in pixels; results are larger. A drawing is
# measured, and drawn anew, some frames after its place has changed.
OF_ANOTHER_SIZE = """async wanted => {
    const others = () => [...document.querySelectorAll('.ex-drawing svg text')].map(text => {
        const drawing = text.ownerSVGElement;
        const scale = drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width;
        return [text.textContent, parseFloat(getComputedStyle(text).fontSize) * scale,
            text.matches('.ex-large, .ex-typed')];
    }).filter(([words, size, result]) => words
        && (result ? size < wanted : Math.abs(size - wanted) > .3));
    const end = performance.now() + 5000;
    while (others().length && performance.now() < end) await new Promise(requestAnimationFrame);
    return others();
}"""


def opened(visit, name, **options):
    """Return a page, and the explorable on it."""
    tab = visit(PAGES[name], **options).tab
    found = tab.locator(f"[data-explorable={name}]")
    found.scroll_into_view_if_needed()
    expect(found).to_have_attribute("data-state", "ready")
    return tab, found, found.locator(".ex-says")


def drawn(tab, name):
    """Return what its drawing is in: itself, or the figure in whose place it is."""
    here = f"[data-explorable={name}]"
    return tab.locator(f"{here}:has(.ex-drawing), .cell:has(.ex-drawing):has(+ {here})").first


# What a keyboard turns where it is no slider, and with which key.
TURNED = {
    "masks": ("[role=gridcell][tabindex='0']", "Space"),
    "heads": ("input[type=radio]:checked", "ArrowRight"),
    "readings": ("input", "ArrowLeft"),  # it begins at its right end
    "tiles": ("label:has-text('tiles read') input", "ArrowLeft"),  # all are read
    "museum": ("input[type=radio]:checked", "ArrowRight"),
    "learned": ("input[type=range]", "ArrowRight"),
    "atlas": ("input", "ArrowLeft"),
    "sentence": ("input", "ArrowLeft"),
}


@each
def test_it_begins_with_the_sentence_of_the_build_and_the_keyboard_moves_it(visit, name):
    tab, found, says = opened(visit, name)
    before = getattr(explorables, name)().says
    assert says.inner_text() == before
    if name in WITHIN:
        assert drawn(tab, name).evaluate(OUTSIDE) == []
    what, key = TURNED.get(name, ("input", "ArrowRight"))
    control = (tab if name == "masks" else found).locator(what).last  # which is in its drawing
    control.focus()
    for _ in range(9):  # an odd number: what was switched on and off again would not differ
        tab.keyboard.press(key)
    expect(says).not_to_have_text(before)
    has_a_name_and_a_table(tab, found)
    if control.get_attribute("type") == "range":
        assert control.get_attribute("aria-valuetext")


def has_a_name_and_a_table(tab, found) -> None:
    """Its drawing says what it is, its numbers are in a fold, and each row of them has a name."""
    title = found.get_attribute("aria-label")
    names = [one.get_attribute("aria-label") for one in tab.locator(".ex-drawing[role=img]").all()]
    if (
        tab.locator(".ex-drawing[role=group], .atlas-open").count() == 0
    ):  # which say what is in them
        assert f"Drawing: {title}" in names
    found.locator(".ex-fold > summary").click()
    rows = found.locator(".ex-numbers tbody tr")
    assert rows.count() and rows.locator("th[scope=row]").count() == rows.count()
    assert found.locator(".ex-numbers").is_visible()
    found.locator(".ex-fold > summary").click()


def test_what_is_typed_is_seen_at_once_and_heard_when_the_reader_rests(visit):
    tab, found, says = opened(visit, "names")
    tab.evaluate(
        "window.heard = []; new MutationObserver(() => { const { textContent } = "
        "document.querySelector('[data-explorable=names] .ex-heard'); "
        "if (textContent) heard.push(textContent); }).observe(document.querySelector("
        "'[data-explorable=names] .ex-heard'), { childList: true })"
    )
    assert says.get_attribute("role") is None
    found.get_by_role("textbox").fill("")
    seen = set()
    for letter in "carmen ortis":
        found.get_by_role("textbox").press(letter)
        seen.add(says.inner_text())
        tab.wait_for_timeout(100)
    assert len(seen) >= 6, "the sentence follows each letter"
    assert tab.evaluate("heard.length") == 0, "nothing is spoken while somebody types"
    tab.wait_for_timeout(900)
    assert len(tab.evaluate("heard")) == 1 and "Carmen Ortiz" in tab.evaluate("heard[0]")


def test_the_atlas_by_keyboard(visit):
    """The wall is one stop; arrows walk it, Enter opens a head, which can be taken out."""
    tab, found, says = opened(visit, "atlas")
    buttons = tab.locator(".atlas-wall button")
    assert buttons.count() == 270 and tab.locator(".atlas-wall [tabindex='0']").count() == 1
    tab.locator(".atlas-wall [tabindex='0']").focus()
    tab.keyboard.press("ArrowRight")
    focus = "document.activeElement.getAttribute('aria-label')"
    assert tab.evaluate(focus).startswith("head 20.7, ")
    tab.keyboard.press("ArrowUp")
    assert tab.evaluate(focus).startswith("head 20.6, ")
    tab.keyboard.press("Home")
    assert tab.evaluate(focus).startswith("head 1.1, ")
    for _ in range(9):
        tab.keyboard.press("ArrowDown")  # on into the next column
    assert tab.evaluate(focus).startswith("head 2.1, ")
    tab.keyboard.press("Enter")
    expect(says).to_contain_text("Head 2.1 ")
    assert tab.evaluate(focus).startswith("head 2.1, ")
    found.get_by_role("button", name="Take this head out").press("Enter")
    expect(found.locator(".atlas-cut p")).to_contain_text("0.186 is what the model gives")
    assert tab.evaluate("document.activeElement.textContent") == "Put this head back"
    expect(says).to_contain_text("Put it back, or open another.")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_head_that_opens_comes_into_view_and_escape_leads_back(visit, width):
    tab, found, _ = opened(visit, "atlas", width=width, reduced_motion="reduce")
    cell, table = tab.locator(".atlas-wall [aria-label^='head 3.2,']"), found.locator("h2")
    for back in ("Escape", "Back to the wall"):
        cell.click()
        expect(table).to_contain_text("Head 3.2")
        expect(table).to_be_in_viewport()
        assert tab.evaluate("document.activeElement.ariaLabel").startswith("head 3.2, ")
        button = found.get_by_role("button", name=back)
        button.click() if back != "Escape" else tab.keyboard.press(back)
        expect(cell).to_be_in_viewport()
        expect(cell).to_be_focused()


def test_the_atlas_sorts_by_what_python_finds(visit):
    tab, _, says = opened(visit, "atlas", reduced_motion="reduce")
    for habit, name in (("one", "looks one back"), ("first", "rests on"), ("up", "looks up")):
        tab.locator(".atlas-sorts").get_by_role("button", name=name).click()
        expect(says).to_contain_text("or sort by something else")
        found = explorables.habits()[habit]
        layer, head = divmod(int(found.argmax()), 9)
        first = tab.locator(".atlas-wall button").first.get_attribute("aria-label")
        assert first.startswith(f"head {layer + 1}.{head + 1}, ")
        count = int((found > 0.5).sum())
        expect(tab.locator(".atlas-told")).to_contain_text(f"{count} of 270 heads give")
        assert tab.locator(".atlas-wall .atlas-faint").count() == 270 - count


def test_a_head_opens_as_a_table_with_its_weights(visit):
    tab, found, _ = opened(visit, "atlas")
    reading = next(iter(explorables.stored().values()))
    tab.locator(".atlas-wall").get_by_role("button", name="head 17.1,").click()
    for token in (17, 10):
        found.get_by_role("slider").fill(str(token + 1))
        shown = found.locator(".atlas-table tbody td:nth-child(2)").all_inner_texts()
        row = reading.weights[16, 0, token]
        assert shown[: token + 1] == [f"{w:.2f}" for w in row[: token + 1]]
        assert set(shown[token + 1 :]) <= {"later"}
    assert found.locator(".atlas-table tbody th[scope=row]").count() == 18


def test_in_forced_colours_the_wall_keeps_its_ramp(visit):
    tab = visit("chapters/atlas", forced_colors="active").tab
    expect(tab.locator("[data-explorable=atlas]")).to_have_attribute("data-state", "ready")
    colours = """canvas => { const pixels = new Uint32Array(
        canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        return new Set(pixels).size; }"""
    assert tab.locator(".atlas-wall canvas").first.evaluate(colours) > 10
    ground = "button => getComputedStyle(button).backgroundColor"
    pressed, other = (
        tab.locator(f".atlas-sorts [aria-pressed={is_}]") for is_ in ("true", "false")
    )
    assert pressed.evaluate(ground) != other.first.evaluate(ground), "which sort is on"


def test_without_its_file_the_wall_is_a_picture(visit):
    tab = visit("chapters/07-real-models").tab
    tab.context.route("**/*.bin", lambda route: route.abort())
    tab.goto(tab.url.replace("07-real-models", "atlas"))
    found = tab.locator("[data-explorable=atlas]")
    found.scroll_into_view_if_needed()
    expect(found.locator(".ex-says")).to_contain_text("could not be loaded")
    assert tab.locator("#drawing-atlas img").first.is_visible()


def test_without_scripts_the_numbers_are_there(visit, built):
    pages = {page: checks.soup(built / f"{page}.html") for page in {*PAGES.values()}}
    for name, page in PAGES.items():
        found = pages[page].select_one(f"[data-explorable={name}]")
        assert found.select(".ex-fold[open] > .ex-numbers td"), name
        assert not found.select("input, button"), name
    tab = visit(PAGES["names"], java_script_enabled=False).tab
    assert tab.locator("[data-explorable=names] .ex-numbers").is_visible()
    for page in ("chapters/index", "chapters/atlas"):
        article = visit(page, java_script_enabled=False).tab.locator("article")
        words = article.inner_text()
        asking = [one for one in ("Type ", "Turn the query", "Open another") if one in words]
        assert not asking, "nothing asks for what only a script can do"
    words = visit("chapters/index", java_script_enabled=False).tab.locator(".ask").inner_text()
    assert "query: alise marlo" in words and "output" in words


def test_nothing_of_it_is_loaded_before_a_reader_comes_near(visit):
    seen = visit(PAGES["masks"])
    found = seen.tab.locator("[data-explorable=masks]")
    assert found.bounding_box()["y"] > 2500, "too near the top of its page for this test"
    seen.tab.wait_for_timeout(300)
    assert not [answer.url for answer in seen.responses if "/explorables/" in answer.url]
    seen.tab.emulate_media(media="print")  # paper has the numbers instead
    assert found.locator(".ex-numbers").is_visible()
    seen.tab.emulate_media(media="screen")
    found.scroll_into_view_if_needed()
    expect(found).to_have_attribute("data-state", "ready")


@each
def test_on_a_phone_nobody_is_shut_out_and_its_words_can_be_read(visit, name):
    tab = visit(PAGES[name], width=390).tab
    found = tab.locator(f"[data-explorable={name}]")
    for width in (1280, 820, 390):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.route("**/explorables/*.mjs", lambda one: None)  # held until its place is measured
        tab.reload()
        tab.evaluate(SETTLED)
        waiting = found.evaluate(ROOM)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, "before it comes"
        tab.unroute("**/explorables/*.mjs")  # and those that were held go on
        found.scroll_into_view_if_needed()
        expect(found).to_have_attribute("data-state", "ready")
        jump = found.evaluate(ROOM) - waiting
        says = f"at {width} what is below it would jump: mend its size or how tall it is"
        assert abs(jump) <= 10, says
    if name in WITHIN:
        assert drawn(tab, name).evaluate(OUTSIDE) == []
    here = f"[data-explorable={name}]"
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        tab.locator(f"html[data-theme={scheme}]").wait_for(state="attached")
        tab.evaluate(
            "Promise.allSettled(document.getAnimations().filter("
            "a => a.effect.target.checkVisibility()).map(a => a.finished)).then(() => 0)"
        )
        assert findings(tab, ALL_RULES if scheme == "light" else COLOURS, here) == [], scheme
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    for control in found.locator("input, button").all():
        assert control.bounding_box()["height"] >= 24
    for wide in (1280, 820, 390, 320):
        tab.set_viewport_size({"width": wide, "height": 900})
        assert found.evaluate(CUT) == [], f"cut at {wide}"
    tab.set_viewport_size({"width": 390, "height": 900})
    assert tab.evaluate(OF_ANOTHER_SIZE, 12.5) == []
    for scheme in ("light", "dark"):
        tab.emulate_media(forced_colors="active", color_scheme=scheme)
        tab.locator(f"html[data-theme={scheme}]").wait_for(state="attached")
        drawing = tab.locator(".ex-drawing svg").first
        assert drawing.evaluate(LEAST_CONTRAST) >= 4.5, f"in forced colours, {scheme}"


@pytest.mark.parametrize("page", sorted({*PAGES.values()} - {"chapters/index"}))
def test_words_have_one_size_in_all_drawings(visit, page):
    """14 pixels, as in the figures; the first screen alone, which is no figure, has larger ones."""
    tab = visit(page, width=1280).tab
    for found in tab.locator("[data-explorable]").all():
        found.scroll_into_view_if_needed()
        expect(found).to_have_attribute("data-state", "ready")
    assert tab.evaluate(OF_ANOTHER_SIZE, 14) == []


# Of the words of a drawing on its ground, as WCAG has it.
LEAST_CONTRAST = """svg => {
    const light = colour => {
        const context = new OffscreenCanvas(1, 1).getContext('2d');
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3)
            .map(x => x / 255).map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
    };
    const ground = light(getComputedStyle(svg).backgroundColor);
    return Math.min(...[...svg.querySelectorAll('text')].map(text => {
        const ink = light(getComputedStyle(text).fill);
        return (Math.max(ink, ground) + .05) / (Math.min(ink, ground) + .05);
    }));
}"""


def test_a_finger_turns_the_query_and_does_not_move_the_page(visit):
    tab, _, says = opened(visit, "lookup", width=390, has_touch=True)
    tab.locator(".ex-hand").scroll_into_view_if_needed()
    hand = tab.locator(".ex-hand").bounding_box()
    reach = tab.locator("circle[fill=transparent]").bounding_box()
    assert min(reach["width"], reach["height"]) >= 44
    at, x = tab.evaluate("scrollY"), hand["x"] + hand["width"] / 2
    press, move, leave = pointer(tab, touch=True)
    press(x, hand["y"] + 4)
    for step in range(1, 11):
        move(x - 9 * step, hand["y"] - 6 * step)
    leave()
    expect(says).to_contain_text("the key (0, 1)")
    assert tab.evaluate("scrollY") == at


def pointer(tab, touch):
    """Return how to press, move and leave, with a finger or the mouse."""
    if not touch:
        mouse = tab.mouse
        return lambda x, y: (mouse.move(x, y), mouse.down()), mouse.move, mouse.up
    finger = tab.context.new_cdp_session(tab)

    def send(kind, *at):
        points = [dict(zip("xy", at, strict=True))] if at else []
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    return tuple(partial(send, kind) for kind in ("touchStart", "touchMove", "touchEnd"))


@pytest.mark.parametrize("touch", [False, True], ids=["mouse", "finger"])
@pytest.mark.parametrize(
    ("name", "hand", "control", "way"),
    [
        ("rotary", "circle.ex-hand.ex-query >> nth=1", "distance to the query", (-20, -45)),
        ("rotary", "circle.ex-hand.ex-key >> nth=1", "place of the key", (-20, -45)),
        ("nile", "circle.ex-hand", "the year that asks", (50, 0)),
        ("tiles", "circle.ex-hand", "score of the last key", (-35, 0)),
        ("heads", "text=Bruna", "first name", (0, 0)),
    ],
)
def test_a_drawing_is_moved_where_the_thing_is(visit, name, hand, control, way, touch):
    tab, found, says = opened(visit, name, width=390 if touch else 1280, has_touch=touch)
    hand, control = drawn(tab, name).locator("svg").locator(hand), found.get_by_label(control)
    hand.evaluate("one => one.scrollIntoView({block: 'center', behavior: 'instant'})")
    box, before, told = hand.bounding_box(), control.input_value(), says.inner_text()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    press, move, leave = pointer(tab, touch)
    at = tab.evaluate("scrollY")
    press(x, y)
    for part in (0.25, 0.5, 0.75, 1) if any(way) else ():
        move(x + part * way[0], y + part * way[1])
    if not any(way):  # a press is enough
        leave()
    expect(says).not_to_have_text(told)
    assert control.input_value() != before
    if any(way):
        went = hand.bounding_box()["x"] - box["x"]
        assert went * way[0] > 0 and abs(went) > 5, "the hand goes where it is drawn to"
        move(x, y)
        assert control.input_value() == before, "and back"
        leave()
    assert tab.evaluate("scrollY") == at, "the page stays"


def test_the_arrow_goes_as_far_as_its_slider_and_the_line_of_arithmetic_follows(visit):
    tab, found, says = opened(visit, "lookup")
    length = found.locator("input").nth(1)
    length.focus()
    tab.keyboard.press("End")
    ends = "line => [+line.getAttribute('x2') - 112, +line.getAttribute('y2') - 122]"
    x, y = tab.locator("line.ex-query").evaluate(ends)
    assert (x**2 + y**2) ** 0.5 == pytest.approx(102, abs=1)  # the edge of the plane: six rings
    found.locator("input").first.focus()
    tab.keyboard.press("Home")  # 180 degrees: two keys are equally far
    expect(says).to_contain_text("fits the keys (0, 1) and (0, 0) equally well")
    assert "then make it longer" not in says.inner_text()
    expect(found.locator(".ex-slider b").first).to_have_text("−180°")
    line = tab.locator(".idea .ex-sum").inner_text()
    assert line.startswith("0.0") and line.endswith(tab.locator(".idea .ex-large").text_content())


def test_on_the_first_screen_a_press_is_enough(visit):
    tab = visit("chapters/index").tab
    screen = tab.locator(".ask")
    screen.get_by_role("button", name="farid").click()
    expect(screen.locator(".ex-says")).to_contain_text("Farid Haddad")
    assert screen.get_by_role("textbox").input_value() == "farid"
    answer = screen.locator(".ex-large").text_content()
    assert screen.locator(".ex-sum").inner_text().endswith(f"= {answer}")


# The smallest letters of the pictures of the first page, in pixels.
SMALLEST = """() => Math.min(...[...document.querySelectorAll('.picture svg text')].map(text =>
    parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"""


@pytest.mark.parametrize("width", [1280, 820, 390])
def test_the_first_screen_shows_the_answer_and_its_pictures_can_be_read(visit, width):
    tab = visit("chapters/index", width=width).tab
    expect(tab.locator(".ask .explorable")).to_have_attribute("data-state", "ready")
    field, answer = (
        tab.locator(one).bounding_box() for one in (".ask input[type=text]", ".ask .ex-large")
    )
    assert answer["y"] + answer["height"] <= 844, "it is below the first screen of a phone"
    assert answer["height"] >= 36, "the answer is as small as any number"
    assert answer["y"] - field["y"] < 350, "the answer is far from what is asked"
    assert tab.locator(".ask").evaluate(OUTSIDE) == []
    assert tab.evaluate(SMALLEST) >= (12 if width == 390 else 13.9)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_a_name_is_answered_at_each_key_press(visit):
    _, found, says = opened(visit, "names")
    field = found.locator("input[type=text]")
    field.fill("")
    expect(says).to_contain_text("plain average, 55.0")
    for letter in "carm":
        before = says.inner_text()
        field.press(letter)
        expect(says).not_to_have_text(before)
    expect(says).to_contain_text("Carmen Ortiz")
    field.fill("carm fari")
    expect(says).to_contain_text("fits Carmen Ortiz and Farid Haddad equally well")
    found.get_by_role("slider").fill("1")  # a temperature of 10
    expect(says).to_contain_text("all eight weigh nearly the same")


def test_the_path_of_the_point_stays_until_it_is_cleared(visit):
    tab, found, says = opened(visit, "triangle")
    points = "line => line.getAttribute('points').trim().split(/ +/).length"
    path = drawn(tab, "triangle").locator("polyline.ex-trail")
    found.locator("input").first.focus()
    for _ in range(10):
        tab.keyboard.press("ArrowLeft")
    assert path.evaluate(points) == 11
    found.get_by_role("button").click()
    assert path.evaluate(points) == 1
    _, other, third = found.get_by_role("slider", name="score of").all()
    other.fill("2")
    expect(says).to_contain_text("is as near to A as to B")
    third.fill("2")
    expect(says).to_contain_text("no temperature can choose")


def test_a_training_is_scrubbed_from_noise_to_a_diagonal(visit):
    tab, found, says = opened(visit, "training")
    darkest = """root => { const all = [...root.querySelectorAll('.ex-square')].map(
        one => Number(one.style.getPropertyValue('--w')));
        return Array.from({length: 8}, (_, i) => all.slice(16 * i, 16 * i + 16))
            .map(row => row.indexOf(Math.max(...row))); }"""
    grid = drawn(tab, "training")
    assert grid.evaluate(darkest) != list(range(8))
    found.get_by_role("button", name="Play").click()
    expect(found.get_by_role("button", name="Pause")).to_be_visible()
    expect(found.get_by_role("button", name="Play")).to_be_visible(timeout=15000)  # at its end
    assert grid.evaluate(darkest) == list(range(8))
    expect(says).to_contain_text("on the diagonal")
    found.locator("input").focus()
    tab.keyboard.press("Home")
    assert grid.evaluate(darkest) != list(range(8))


def test_the_score_stays_when_both_places_move(visit):
    tab, found, says = opened(visit, "rotary")
    both, apart = found.locator("input").all()
    both.focus()
    for place in (2, 3, 4):
        tab.keyboard.press("ArrowRight")
        expect(says).to_contain_text(f"stands at {place + 2} and the key at {place}, so the score")
        expect(says).to_contain_text("the score is 1.15")
        expect(says).to_contain_text("the score has stayed. Now change the distance.")
    angles = """root => ['.ex-ghost', '.ex-between'].map(kind => [...root.querySelectorAll(kind)]
        .map(part => Math.round(part.getTotalLength())))"""
    began, now = tab.locator("article").evaluate(angles)
    assert began == now, "the ghost shows the same angle where both began"
    apart.focus()
    tab.keyboard.press("End")
    expect(says).not_to_contain_text("hange the distance")
    tab.keyboard.press("Home")
    expect(says).to_contain_text("At the same place")


def test_any_head_is_asked_and_loaded_only_then(visit):
    seen = visit("chapters/07-real-models")
    tab = seen.tab
    found = tab.locator("[data-explorable=readings]")
    found.scroll_into_view_if_needed()
    expect(found).to_have_attribute("data-state", "ready")
    says = found.locator(".ex-says")
    assert not [answer.url for answer in seen.responses if answer.url.endswith(".bin")]
    found.get_by_role("slider", name="layer").fill("17")
    found.get_by_role("slider", name="head").fill("1")
    expect(says).to_contain_text("In head 17.1")
    expect(says).to_contain_text("the piece just before it")
    found.get_by_role("combobox").select_option(label="The capital of France is")
    expect(says).to_contain_text("“is” takes")
    drawn(tab, "readings").locator(".ex-pieces span", has_text="of").click()
    expect(says).to_contain_text("“of” takes")
    files = [answer.url.rpartition("/")[2] for answer in seen.responses]
    assert sorted(name for name in files if name.endswith(".bin")) == [
        "reading-0.bin",
        "reading-2.bin",
    ]
    assert seen.said == []


def test_without_its_file_a_head_says_so(visit):
    tab, found, says = opened(visit, "readings")
    tab.context.route("**/*.bin", lambda route: route.abort())
    found.get_by_role("slider", name="layer").fill("3")
    expect(says).to_contain_text("could not be loaded")
    tab.context.unroute_all()
    found.get_by_role("slider", name="layer").fill("4")
    expect(says).to_contain_text("In head 4.7")


@pytest.mark.parametrize("page", [PAGES["learned"], "chapters/index"])
def test_names_are_compared_by_what_is_learned_and_loaded_only_then(visit, page):
    seen = visit(page)
    found = seen.tab.locator("[data-explorable=learned]")
    found.scroll_into_view_if_needed()
    expect(found).to_have_attribute("data-state", "ready")
    says = found.locator(".ex-says")
    typed = found.get_by_role("textbox")
    typed.fill("bruna kelner")
    expect(says).to_contain_text("Bruna Kellner")
    assert not [answer.url for answer in seen.responses if answer.url.endswith(".bin")]
    found.get_by_role("radio", name="by trigrams").focus()
    seen.tab.keyboard.press("ArrowDown")
    expect(says).to_contain_text("of the weight (by trigrams 0.")
    typed.fill("karmen ordis")
    expect(says).to_contain_text("Carmen Ortiz")
    typed.fill("Иван")
    expect(says).to_contain_text("never learned")
    typed.fill("")
    expect(says).to_contain_text("the plain average, 55.0")
    assert [answer.url for answer in seen.responses if answer.url.endswith("name-encoder.bin")]
    assert seen.said == []


def test_without_its_file_the_encoder_says_so(visit):
    tab, found, says = opened(visit, "learned")
    tab.context.route("**/*.bin", lambda route: route.abort())
    found.get_by_role("radio", name="what is learned").check()
    expect(says).to_contain_text("could not be loaded")
    tab.context.unroute_all()
    found.get_by_role("textbox").fill("elspet grant")
    expect(says).to_contain_text("Elspeth Grant")


def test_tiles_of_any_size_end_in_the_same_answer(visit):
    tab, found, says = opened(visit, "tiles")
    for size in ("1 key", "2 keys", "4 keys"):
        found.get_by_role("radio", name=size).check()
        found.get_by_role("slider", name="tiles read").focus()
        tab.keyboard.press("End")
        expect(says).to_contain_text("the output so far is 9.00")
    found.get_by_role("radio", name="2 keys").check()
    expect(says).to_contain_text("Change the last score")
    found.get_by_role("slider", name="score of the last key").fill("7")
    expect(says).to_contain_text("Does another size of the tiles give the same?")


def test_each_mistake_is_noticed_by_a_test(visit):
    _, found, says = opened(visit, "museum")
    found.get_by_role("radio", name="with the mistake").check()
    for number in (1, 2, 3, 4, 0):
        before = says.inner_text()
        found.get_by_role("combobox").select_option(index=number)
        expect(says).not_to_have_text(before)
        expect(says).to_contain_text("notice")
    found.get_by_role("radio", name="as it should be").check()
    expect(says).to_contain_text("all four tests hold again. Choose another")


def test_two_heads_split_the_query_and_join_their_outputs(visit):
    tab, found, says = opened(visit, "heads", reduced_motion="reduce")
    picture = drawn(tab, "heads")
    halves = """root => [...root.querySelectorAll('.ex-glides')]
        .map(group => group.getBoundingClientRect().toJSON())"""
    one = picture.evaluate(halves)
    assert abs(one[0]["right"] - one[1]["left"]) < 3, "one vector, without a gap"
    ends = """root => ['.ex-ground', '.ex-value'].map(kind => root.querySelector(`svg ${kind}`)
        .getBoundingClientRect()).map(({left, right}) => [left, right])"""
    (_, bar), (value, _) = picture.evaluate(ends)
    assert value - bar < 120, "an empty half"
    found.get_by_role("radio", name="two heads").check()
    two = picture.evaluate(halves)
    assert two[1]["left"] - two[0]["right"] > 50
    assert abs(two[2]["right"] - two[3]["left"]) < 3, "merged"
    found.get_by_role("radio", name="one head").check()
    expect(says).not_to_contain_text("Give it two heads")
    found.get_by_role("combobox", name="second name").select_option("Alice")
    expect(says).to_contain_text("Both questions ask for Alice")


def test_nobody_is_asked_about_a_key_that_has_no_weight(visit):
    _, found, says = opened(visit, "told")
    found.get_by_role("slider", name="key").fill("1")
    expect(says).to_contain_text("gives 0.00 to “Z”")
    expect(says).to_contain_text("Choose a key with more weight")


def test_a_word_that_the_mouse_comes_near_asks(visit):
    tab, _, says = opened(visit, "masks")
    tab.locator(".ex-near").first.hover()
    expect(says).to_contain_text("“i” does not see “like”")
    assert tab.locator(".ex-lines .ex-strong").text_content() == "i"


def test_the_closing_sentence_notices_what_was_done(visit):
    tab, found, says = opened(visit, "masks")
    tab.locator(".ex-near").first.hover()
    expect(says).to_contain_text("Now choose the other sentence.")
    found.get_by_role("combobox").select_option(index=1)
    expect(says).to_contain_text("Click a cell of its row")
    drawn(tab, "masks").get_by_label("apple sees apple").click()
    expect(says).to_contain_text("“eat” took over from “apple”.")
    _, found, says = opened(visit, "sentence")
    found.get_by_role("textbox").fill("i like an apple")
    expect(says).to_contain_text("Now try another head.")
    found.get_by_role("slider", name="head").fill("3")
    expect(says).to_contain_text("This head looks one back in any sentence")
    _, found, says = opened(visit, "nile")
    found.get_by_role("slider", name="the year").fill("1899")
    expect(says).to_contain_text("Of the weight of 1899, 0.40 lies beyond the fall")
