"""Explorables in Chromium: by keyboard, mouse and touch, and what stands there without them."""

from functools import partial

import pytest
from playwright.sync_api import expect

from chapters._code import explorables
from tests.browser.conftest import SETTLED, lasting
from tests.browser.test_every_page import ALL_RULES, COLOURS, SHOWN, findings
from tests.browser.test_reading import CONTRASTS

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
# How much of the page it takes, with the figure before it, in whose place it may draw.
ROOM = "root => root.offsetHeight + (root.previousElementSibling?.offsetHeight ?? 0)"
# Those that have not the size of words in figures, in pixels; results are larger.
OF_ANOTHER_SIZE = """wanted => [...document.querySelectorAll('.ex-drawing svg text')].map(text => {
    const drawing = text.ownerSVGElement;
    const scale = drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width;
    return [text.textContent, parseFloat(getComputedStyle(text).fontSize) * scale,
        text.matches('.ex-large, .ex-typed')];
}).filter(([words, size, result]) => words
    && (result ? size < wanted : Math.abs(size - wanted) > .3))"""


def opened(visit, name, **options):
    """Return a page, and the explorable on it."""
    return come_near(visit(PAGES[name], **options).tab, name)


def come_near(tab, name):
    """Scroll to an explorable; return the page, it, and what it says."""
    found = tab.locator(f"[data-explorable={name}]")
    found.scroll_into_view_if_needed()
    expect(found).to_have_attribute("data-state", "ready")
    return tab, found, found.locator(".ex-says")


def files(seen):
    """Return the files of numbers that a page has asked for."""
    names = [answer.url.rpartition("/")[2] for answer in seen.responses]
    return sorted(name for name in names if name.endswith(".bin"))


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
        assert lasting(drawn(tab, name), OUTSIDE) == []
    if PAGES[name] != "chapters/index":  # whose first screen has larger words
        assert lasting(tab, OF_ANOTHER_SIZE, 14) == []
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
    names = [one.get_attribute("aria-label") for one in tab.locator(".ex-drawing[role=img]").all()]
    if tab.locator(".ex-drawing[role=group], .atlas-open").count() == 0:  # which name their parts
        assert f"Drawing: {found.get_attribute('aria-label')}" in names
    found.locator(".ex-fold > summary").click()
    rows = found.locator(".ex-numbers tbody tr")
    assert rows.count() and rows.locator("th[scope=row]").count() == rows.count()
    expect(found.locator(".ex-numbers")).to_be_visible()


# Types letters, and says what was seen after each, and heard meanwhile.
TYPED = """(root, letters) => {
    const field = document.querySelector('.ex-field input'), seen = [];
    const heard = root.querySelector('.ex-heard');
    field.value = '';
    for (const letter of letters) {
        field.value += letter;
        field.dispatchEvent(new Event('input', {bubbles: true}));
        seen.push(root.querySelector('.ex-says').textContent);
    }
    return [seen, heard.textContent];
}"""


def test_what_is_typed_is_seen_at_once_and_heard_when_the_reader_rests(visit):
    tab, found, says = opened(visit, "names")
    assert says.get_attribute("role") is None
    seen, heard = found.evaluate(TYPED, "carmen ortis")
    assert len({*seen}) >= 6 and heard == "", "each letter is seen, none is spoken"
    expect(found.locator(".ex-heard[role=status]")).to_contain_text("Carmen Ortiz")
    field = drawn(tab, "names").get_by_role("textbox")
    field.fill("")
    expect(says).to_contain_text("plain average, 55.0")
    field.fill("carm fari")
    expect(says).to_contain_text("fits Carmen Ortiz and Farid Haddad equally well")
    found.get_by_role("slider").fill("1")  # a temperature of 10
    expect(says).to_contain_text("all eight weigh nearly the same")
    tab.emulate_media(media="print")
    figure = drawn(tab, "names")
    expect(figure.locator(".d2lmini-figure")).to_be_visible()
    expect(figure.locator(".ex-drawing")).to_be_hidden()


def test_the_atlas_by_keyboard(visit):
    """The wall is one stop; arrows walk it, Enter opens a head, which can be taken out."""
    tab, found, says = opened(visit, "atlas", reduced_motion="reduce")
    stop = tab.locator(".atlas-wall [tabindex='0']")
    assert tab.locator(".atlas-wall button").count() == 270 and stop.count() == 1
    stop.focus()
    focus = "document.activeElement.getAttribute('aria-label')"
    for key, head in {"ArrowRight": "20.7", "ArrowUp": "20.6", "Home": "1.1"}.items():
        tab.keyboard.press(key)
        assert tab.evaluate(focus).startswith(f"head {head}, ")
    for _ in range(9):
        tab.keyboard.press("ArrowDown")  # on into the next column
    tab.keyboard.press("Enter")
    expect(says).to_contain_text("Head 2.1 ")
    expect(found.locator("h2")).to_be_in_viewport()
    expect(found.locator(".atlas-lookup")).to_be_in_viewport(ratio=0.95)
    expect(tab.locator(".atlas-wall")).to_be_in_viewport(ratio=0.8)
    assert tab.evaluate(focus).startswith("head 2.1, ")
    found.get_by_role("button", name="Take this head out").press("Enter")
    expect(found.locator(".atlas-cut p")).to_contain_text("0.186 is what the model gives")
    tab.keyboard.press("Escape")
    assert tab.locator(".wall [role=status], .wall [aria-live]").count() == 1, "heard twice"
    cell = tab.locator(".atlas-wall [aria-label^='head 2.1,']")
    expect(cell).to_be_in_viewport()
    expect(cell).to_be_focused()


def test_the_atlas_sorts_by_what_python_finds(visit):
    tab, _, says = opened(visit, "atlas", reduced_motion="reduce")
    most, least = tab.locator(".atlas-first"), tab.locator(".atlas-last")
    expect(most).to_have_text("layer 1, nearest to the words")
    expect(least).to_have_text("layer 30, nearest to the answer")
    for habit, name in (("one", "looks one back"), ("first", "rests on"), ("up", "looks up")):
        tab.locator(".atlas-sorts").get_by_role("button", name=name).click()
        expect(says).to_contain_text("or sort by something else")
        found = explorables.habits()[habit]
        layer, head = divmod(int(found.argmax()), 9)
        first = tab.locator(".atlas-wall button").first.get_attribute("aria-label")
        assert first.startswith(f"head {layer + 1}.{head + 1}, ")
        count = int((found > 0.5).sum())
        expect(most).to_contain_text(f"most: {count} heads give")
        expect(least).to_have_text("least (pale)")
        expect(says).to_contain_text(f"{count} of 270 heads give")
        assert tab.locator(".atlas-wall .atlas-faint").count() == 270 - count
    for width, down in ((1280, False), (390, True)):  # what stands at an end is at this end
        tab.set_viewport_size({"width": width, "height": 900})
        wall, start, end = (one.bounding_box() for one in (tab.locator(".atlas-wall"), most, least))
        assert (start["y"] < wall["y"]) == down and end["y"] > wall["y"]


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


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("atlas", None),
        ("readings", lambda found: found.get_by_role("slider", name="layer").fill("3")),
        ("learned", lambda found: found.get_by_role("radio", name="learned it").check()),
    ],
)
def test_without_its_file_it_says_so(visit, name, act):
    tab = visit("chapters/closing").tab
    tab.context.route("**/*.bin", lambda route: route.abort())
    tab.goto(tab.url.replace("chapters/closing", PAGES[name]))
    found = tab.locator(f"[data-explorable={name}]")
    found.scroll_into_view_if_needed()
    if act:
        act(come_near(tab, name)[1])
    expect(found.locator(".ex-says")).to_contain_text("could not be loaded")
    if name == "atlas":
        expect(tab.locator("#drawing-atlas img").first).to_be_visible()


def test_without_scripts_the_numbers_are_there_and_nothing_asks_for_a_script(visit):
    for page in ("chapters/index", "chapters/atlas"):
        article = visit(page, java_script_enabled=False).tab.locator("article")
        assert article.locator(".ex-numbers").first.is_visible()
        words = article.inner_text()
        assert not [one for one in ("Type ", "Turn the query", "Open another") if one in words]


def test_nothing_of_it_is_loaded_before_a_reader_comes_near(visit):
    seen = visit(PAGES["masks"])
    found = seen.tab.locator("[data-explorable=masks]")
    assert found.bounding_box()["y"] > 2500, "too near the top of its page for this test"
    seen.tab.wait_for_load_state("networkidle")
    assert not [answer.url for answer in seen.responses if "/explorables/" in answer.url]
    seen.tab.emulate_media(media="print")  # paper has the numbers instead
    assert found.locator(".ex-numbers").is_visible()


@each
def test_on_a_phone_nobody_is_shut_out_and_its_words_can_be_read(visit, name):
    tab = visit(PAGES[name], width=390).tab
    found = tab.locator(f"[data-explorable={name}]")
    for width in (1280, *[820] * (name == "atlas"), 390):  # which stands otherwise on a tablet
        tab.set_viewport_size({"width": width, "height": 900})
        tab.route("**/explorables/*.mjs", lambda one: None)  # held until its place is measured
        tab.reload()
        tab.evaluate(SETTLED)
        waiting = found.evaluate(ROOM)
        tab.unroute("**/explorables/*.mjs")  # and those that were held go on
        found.scroll_into_view_if_needed()
        expect(found).to_have_attribute("data-state", "ready")
        says = f"at {width} what is below it would jump: mend its size or how tall it is"
        assert not lasting(found, f"root => Math.abs(({ROOM})(root) - {waiting}) > 10"), says
    if name in WITHIN:
        assert lasting(drawn(tab, name), OUTSIDE) == []
    assert lasting(tab, OF_ANOTHER_SIZE, 12.5) == []
    for control in found.locator("input, button").all():
        assert control.bounding_box()["height"] >= 24
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        tab.locator(f"html[data-theme={scheme}]").wait_for(state="attached")
        tab.evaluate(SHOWN)
        here = f"[data-explorable={name}]"
        assert findings(tab, ALL_RULES if scheme == "light" else COLOURS, here) == [], scheme
    tab.emulate_media(forced_colors="active", color_scheme="dark")
    words = tab.evaluate(CONTRASTS, [".ex-drawing svg text", "fill"])
    assert [word for word, ratio, _ in words if ratio < 4.5] == [], "in forced colours"


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


@pytest.mark.parametrize(
    ("name", "hand", "control", "way", "touch"),
    [
        ("lookup", "circle.ex-hand", "direction of the query", (-60, -40), True),
        ("rotary", "circle.ex-hand.ex-query >> nth=1", "distance to the query", (-20, -45), True),
        ("rotary", "circle.ex-hand.ex-key >> nth=1", "place of the key", (-20, -45), False),
        ("nile", "circle.ex-hand", "the year that asks", (50, 0), True),
        ("tiles", "circle.ex-hand", "score of the last key", (-35, 0), False),
        ("heads", "text=Bruna", "first name", (0, 0), True),
    ],
)
def test_a_drawing_is_moved_where_the_thing_is(visit, name, hand, control, way, touch):
    tab, found, says = opened(visit, name, width=390 if touch else 1280, has_touch=touch)
    drawing = tab if name == "lookup" else drawn(tab, name)  # it stands far above its controls
    hand, control = drawing.locator("svg").locator(hand), found.get_by_label(control)
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
    expect(control).not_to_have_value(before)
    if any(way):  # the hand goes where it is drawn to, and back
        stays = "(one, [x, way]) => (one.getBoundingClientRect().x - x) * Math.sign(way) < 5"
        assert not lasting(hand, stays, [box["x"], way[0]])
        move(x, y)
        expect(control).to_have_value(before)
        leave()
    assert tab.evaluate("scrollY") == at, "the page stays"


def test_a_finger_that_moves_up_from_a_hand_that_goes_sideways_moves_the_page(visit):
    tab, found, _ = opened(visit, "nile", width=390, has_touch=True)
    hand, year = drawn(tab, "nile").locator("svg circle.ex-hand"), found.get_by_label("the year")
    hand.evaluate("one => one.scrollIntoView({block: 'center', behavior: 'instant'})")
    box, before, at = hand.bounding_box(), year.input_value(), tab.evaluate("scrollY")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    press, move, leave = pointer(tab, touch=True)
    press(x, y)
    for step in range(1, 9):
        move(x + step, y - 20 * step)
    leave()
    tab.wait_for_function(f"scrollY > {at} + 60")
    assert year.input_value() == before


def test_the_point_follows_the_hand_at_every_temperature(visit):
    """A score ends at 3 and has steps, a place in the triangle neither."""
    tab, found, says = opened(visit, "triangle")
    hand = drawn(tab, "triangle").locator("svg .ex-grip")
    for temperature in (-1.5, 0, 2):  # in powers of ten
        found.get_by_label("temperature").fill(str(temperature))
        hand.evaluate("one => one.scrollIntoView({block: 'center', behavior: 'instant'})")
        middle = [tab.locator("svg circle.ex-value").nth(i).bounding_box() for i in range(3)]
        for shares in ((0.6, 0.3, 0.1), (0.05, 0.15, 0.8), (0.34, 0.33, 0.33)):
            to = [sum(s * (m[a] + m[b] / 2) for s, m in zip(shares, middle, strict=True))
                  for a, b in (("x", "width"), ("y", "height"))]  # fmt: skip
            hand.hover()
            tab.mouse.down()
            tab.mouse.move(*to)
            tab.mouse.up()
            box = hand.bounding_box()
            assert box["x"] + box["width"] / 2 == pytest.approx(to[0], abs=2), temperature
            assert box["y"] + box["height"] / 2 == pytest.approx(to[1], abs=2), temperature
            assert ", ".join(f"{share:.2f}" for share in shares) in says.inner_text()


def test_the_line_of_arithmetic_follows_the_arrow(visit):
    tab, found, says = opened(visit, "lookup")
    reach = tab.locator("circle[fill=transparent]").bounding_box()
    assert min(reach["width"], reach["height"]) >= 44, "a finger misses it"
    found.locator("input").first.focus()
    tab.keyboard.press("Home")  # 180 degrees: two keys are equally far
    expect(says).to_contain_text("fits the keys (0, 1) and (0, 0) equally well")
    line = tab.locator(".idea .ex-sum").inner_text()
    assert line.startswith("0.0") and line.endswith(tab.locator(".idea .ex-large").text_content())


@pytest.mark.parametrize("width", [1280, 390])
def test_the_first_screen_answers_to_a_press(visit, width):
    tab = visit("chapters/index", width=width).tab
    screen = tab.locator(".ask")
    expect(screen.locator("[data-explorable]")).to_have_attribute("data-state", "ready")
    large = screen.locator(".ex-large")
    answer = large.bounding_box()
    assert answer["y"] + answer["height"] <= 844, "it is below the first screen of a phone"
    assert lasting(screen, OUTSIDE) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    screen.get_by_role("button", name="farid").click()
    expect(screen.locator("[data-explorable] .ex-says")).to_contain_text("Farid Haddad")
    assert screen.get_by_role("textbox").input_value() == "farid"
    assert screen.locator(".ex-sum").inner_text().endswith(f"= {large.text_content()}")
    screen.get_by_role("radio", name="learned it").click(timeout=3000)  # nothing lies on it
    screen.get_by_role("slider").first.click(position={"x": 9, "y": 8}, timeout=3000)
    expect(screen.get_by_role("slider").first).not_to_have_attribute("aria-valuetext", "0.1")
    tab.locator(".strip .picture").last.scroll_into_view_if_needed()
    if width < 640:  # elsewhere it is in sight from the first, and may have played by now
        expect(tab.locator(".strip .ex-seen").last).to_be_visible()
    expect(tab.locator(".strip .ex-seen")).to_have_count(0, timeout=15000)
    tab.emulate_media(media="print")  # paper has what stood there before
    assert screen.locator(".ex-still .ex-numbers").is_visible() and not large.is_visible()
    assert "farid" not in screen.inner_text() and screen.locator("button:visible").count() == 0
    assert not tab.locator("#drawing-idea .ex-live").is_visible()


def test_a_training_is_played_to_its_diagonal(visit):
    _, found, says = opened(visit, "training")
    expect(says).not_to_contain_text("on the diagonal")
    found.get_by_role("button", name="Play").click()
    expect(found.get_by_role("button", name="Pause")).to_be_visible()
    expect(says).to_contain_text("on the diagonal", timeout=15000)
    expect(found.get_by_role("button", name="Play")).to_be_visible(timeout=15000)  # at its end


def test_the_score_stays_when_both_places_move(visit):
    tab, found, says = opened(visit, "rotary")
    both, apart = found.locator("input").all()
    both.focus()
    for place in (2, 3, 4):
        tab.keyboard.press("ArrowRight")
        expect(says).to_contain_text(f"query at {place + 2} and the key at {place}, the score")
        expect(says).to_contain_text("the score is 1.15")
    apart.focus()
    tab.keyboard.press("Home")
    expect(says).to_contain_text("At the same place")


def test_any_head_is_asked_and_loaded_only_then(visit):
    seen = visit(PAGES["readings"])
    tab, found, says = come_near(seen.tab, "readings")
    assert files(seen) == []
    found.get_by_role("slider", name="layer").fill("17")
    found.get_by_role("slider", name="head").fill("1")
    expect(says).to_contain_text("In head 17.1")
    expect(says).to_contain_text("the token just before it")
    found.get_by_role("combobox").select_option(label="The capital of France is")
    expect(says).to_contain_text("“is” takes")
    drawn(tab, "readings").locator(".ex-pieces span", has_text="of").click()
    expect(says).to_contain_text("“of” takes")
    assert files(seen) == ["reading-0.bin", "reading-2.bin"]


def test_names_are_compared_by_what_is_learned_and_loaded_only_then(visit):
    seen = visit(PAGES["learned"])
    tab, found, says = come_near(seen.tab, "learned")
    typed = found.get_by_role("textbox")
    typed.fill("bruna kelner")
    expect(says).to_contain_text("Bruna Kellner")
    assert files(seen) == []
    found.get_by_role("radio", name="by letters").focus()
    tab.keyboard.press("ArrowDown")
    expect(says).to_contain_text("of the weight (by letters in a row 0.")
    typed.fill("karmen ordis")
    expect(says).to_contain_text("Carmen Ortiz")
    typed.fill("Иван")
    expect(says).to_contain_text("never learned")
    assert files(seen) == ["name-encoder.bin"]


def test_other_sentences_answer_rightly(visit):
    tab, found, says = opened(visit, "masks")
    tab.locator(".ex-near").first.hover()
    expect(says).to_contain_text("“i” does not see “like”")
    found.get_by_role("combobox").select_option(index=1)
    drawn(tab, "masks").get_by_label("apple sees apple").click()
    expect(says).to_contain_text("“eat” took over from “apple”.")
    padding = found.get_by_role("button", name="Padding")
    padding.click()
    found.get_by_role("combobox").select_option(index=0)  # the mask stays
    expect(padding).to_have_attribute("aria-pressed", "true")
    expect(says).to_contain_text("5 of 25 cells are hidden. “apple” does not see “i”")
    _, found, says = opened(visit, "triangle")
    for slider in found.get_by_role("slider", name="score of").all()[1:]:
        slider.fill("2")
    expect(says).to_contain_text("no temperature can choose")
    _, found, says = opened(visit, "told")
    found.get_by_role("slider", name="key").fill("1")
    expect(says).to_contain_text("gives 0.00 to “Z”")
    _, found, says = opened(visit, "sentence")
    found.get_by_role("textbox").fill("i like an apple")
    found.get_by_role("slider", name="head").fill("3")
    expect(says).to_contain_text("This head looks one back in any sentence")
    for typed in ("", "i", "i like", "i like apple"):  # after an empty field the last word asks
        found.get_by_role("textbox").fill(typed)
    expect(says).to_contain_text("In head 1.3, “apple” takes")
    _, found, says = opened(visit, "nile")
    found.get_by_role("slider", name="the year").fill("1899")
    expect(says).to_contain_text("Of the weight of 1899, 0.40 lies beyond the fall")
