"""On paper: each page of the book, and the whole book as one PDF."""

import io
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest
from pypdf import PdfReader

from scripts import pdf
from tests import proved
from tests.book import checks
from tests.book.building import ROOT, once, pages_of

# How strongly each text stands out from what is behind it, and how light that is, from 0 to 1.
CONTRASTS = """selector => {
    const pixel = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const light = colours => {
        pixel.fillStyle = "white";
        for (const colour of ["white", ...colours]) {
            pixel.fillStyle = colour;
            pixel.fillRect(0, 0, 1, 1);
        }
        const [r, g, b] = [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3).map(
            part => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    return [...document.querySelectorAll(selector)].filter(e => e.checkVisibility()).map(e => {
        const behind = [];
        for (let over = e; over; over = over.parentElement)
            behind.unshift(getComputedStyle(over).backgroundColor);
        const ground = light(behind), text = light([...behind, getComputedStyle(e).color]);
        const ratio = (Math.max(ground, text) + 0.05) / (Math.min(ground, text) + 0.05);
        return [e.textContent.slice(0, 40), ratio, ground];
    });
}"""
TEXTS = {
    "headings": "main :is(h1, h2, h3)",
    "body": "main :is(p, li)",
    "code": "main div.highlight span",
    "outputs": "main div.cell_output pre",
    "cells of tables": "main :is(td, th)",
    "links": "main p a.reference",
    "the four colours": "main :is(.query, .key, .value, .output-word)",
    "titles of boxes": "main .admonition-title",
}


@pytest.fixture(scope="module")
def book(request, built, chromium):
    """Return the page that is printed, and the PDF; after `make book`, what was read is kept."""

    def make(folder):
        read = folder / "_build" / ".doctrees"
        shutil.copytree(built.parent / ".doctrees", read)
        page = pdf.build_page(folder / "_build")
        pdf.print_page(page, folder / "book.pdf", chromium)
        shutil.rmtree(read)
        return 0, str(page)

    scripts = proved.files("scripts/pdf.py", "scripts/paper.py", "scripts/paper.css")
    folder, (_, page) = once(request, "paper", make, proved.key(scripts))
    return Path(page), (folder / "book.pdf").read_bytes()


@pytest.fixture
def on_paper(request, chromium, built):
    """Return a function that opens a page as a reader of this kind prints it."""
    system = "light" if request.param in ("light", "chosen dark") else "dark"
    scripts = "without" not in request.param
    context = chromium.new_context(color_scheme=system, java_script_enabled=scripts)
    if request.param == "chosen dark":  # on an earlier visit
        context.add_init_script("localStorage.theme = localStorage.mode = 'dark'")
    tab = context.new_page()

    def open_page(name):
        tab.goto((built / f"chapters/{name}.html").as_uri())
        if request.param == "chosen dark":
            assert tab.locator("html").get_attribute("data-theme") == "dark"
        tab.emulate_media(media="print", color_scheme=system)
        return tab

    yield open_page
    context.close()


def require_contrast(tab):
    """Paper is white, and all on it can be read."""
    seen = 0
    for kind, selector in TEXTS.items():
        for text, ratio, ground in tab.evaluate(CONTRASTS, selector):
            seen += 1
            heat = kind == "cells of tables"  # they have colours of their own
            assert heat or ground > 0.75, (kind, text, ground)
            assert ratio >= 4.5, (kind, text, ratio)
    assert seen > 50


READERS = ["light", "dark", "chosen dark", "dark without scripts"]


@pytest.mark.parametrize("on_paper", READERS, indirect=True)
def test_a_page_on_paper(on_paper):
    """Its figures are drawn for paper; what only a screen can do is left out."""
    tab = on_paper("02-softmax-weighting")  # which has all but one kind of text
    require_contrast(tab)
    shown = "images => images.map(image => image.checkVisibility())"
    light, dark = (tab.locator(f"main img.only-{theme}") for theme in ("light", "dark"))
    assert light.count() == dark.count() > 3
    assert all(light.evaluate_all(shown)) and not any(dark.evaluate_all(shown))
    tab = on_paper("01-database-analogy")
    text = tab.locator("main").inner_text()
    for gone in ("Show code", "Hide code", "Show the numbers", "not attempted yet"):
        assert gone not in text
    assert not tab.locator("main button.copybtn").first.is_visible()
    assert "best = scores.argmax" in text  # a solution
    drawing, checking = (
        tab.locator(f"main .cell{kind} > details.hide pre").evaluate_all(shown)
        for kind in (".shows-figure", ".tag_hide-cell")
    )
    assert drawing and not any(drawing), "a page of what draws a figure"
    assert checking and all(checking), "a reader of paper sees what tests the text"


@pytest.mark.parametrize("on_paper", ["chosen dark"], indirect=True)
@pytest.mark.parametrize("page", ["index", "notation", "api"])
def test_paper_is_white_for_other_kinds_of_pages(on_paper, page):
    require_contrast(on_paper(page))


@pytest.fixture(scope="module")
def html(book):
    return checks.soup(book[0])


@pytest.fixture(scope="module")
def numbers(book):
    return pdf.page_numbers(book[1])


@pytest.fixture(scope="module")
def sheet(chromium, book):
    """Open the page as wide as the paper's column."""
    context = chromium.new_context(viewport={"width": 552, "height": 956})
    tab = context.new_page()
    tab.goto(book[0].as_uri())
    tab.emulate_media(media="print")
    tab.evaluate("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
    tab.wait_for_load_state("networkidle")
    yield tab
    context.close()


def test_it_is_a_book_for_every_reader_whose_links_lead_somewhere(book, html, numbers):
    content = book[1]
    assert content.startswith(b"%PDF-")
    for needed in (b"/Outlines", b"/StructTreeRoot", b"/Lang (en)"):
        assert needed in content
    assert b"/Title (Queries, Keys and Values)" in content
    assert b"file:" not in content and str(ROOT).encode() not in content
    targets = re.findall(rb"/URI \((.*?)\)", content)
    assert targets and all(target.startswith((b"http", b"mailto:")) for target in targets)
    used = {name.decode() for name in re.findall(rb"/Dest /(\S+)", content)}
    assert len(used) > len(html.select("main h2"))  # at least what the contents link to
    assert {pdf.unquote(name.replace("#", "%")) for name in used} <= set(numbers)
    names = [tag["id"] for tag in html.find_all(id=True)]
    assert len(names) == len(set(names))
    hrefs = {link["href"] for link in html.find_all("a", href=True)}
    assert {href[1:] for href in hrefs if href.startswith("#")} <= set(names)
    assert all(href.startswith(("#", "http", "mailto:")) for href in hrefs)


def test_title_page_then_contents_then_chapters(html, numbers):
    cover, contents, *documents = html.main.find_all(recursive=False)
    assert html.title.get_text() == cover.find(class_="title").get_text()
    assert "CC BY 4.0" in cover.get_text() and "authors" in cover.get_text()
    assert cover.find("img", alt=True)
    listed = [page for page in pages_of(ROOT / "_toc.yml") if page.count("/") == 1]
    assert len(documents) == len(listed)  # others are in the page that lists them
    first = [numbers[contents.find("a", href=f"#{d['id']}")["href"][1:]] for d in documents]
    assert first[0] > 2 and first == sorted(set(first))  # each on a page of its own
    listed = [numbers[tag["data-page"]] for tag in contents.find_all(attrs={"data-page": True})]
    assert listed == sorted(listed) and len(listed) >= len(html.select("main h1, main h2")) / 2
    assert all(document.h1 and document.find_all("h1") == [document.h1] for document in documents)


LONGEST = 45  # pages of a chapter, answers included: twice what half an hour of reading takes


def test_a_chapter_is_no_longer_than_one_sitting_and_answers_stand_at_its_end(html, numbers):
    """What a screen folds, a large table of numbers for example, may not fill sheets of paper."""
    documents = html.select(".document")
    starts = [numbers[document.h1.find_parent("section")["id"]] for document in documents]
    for document, start, end in zip(documents, starts, starts[1:], strict=False):
        if document.h1.select_one(".section-number"):
            assert end - start <= LONGEST, f"{document.h1.get_text()} has {end - start} pages"
    chapters = [c for c in documents if c.h1.select_one(".section-number")]
    assert all(c.h1["class"] == ["asks"] for c in chapters)
    assert len(chapters) == len(list((ROOT / "chapters").glob("*.ipynb")))
    for chapter in chapters:
        assert chapter.find_all(recursive=False)[-1]["class"] == ["answers-all"]
        questions = chapter.select(".see a")
        assert questions and len(questions) == len(chapter.select(".answers"))
        for link in questions:
            name = link["href"][1:]
            assert chapter.find(id=name) and numbers[name] >= numbers[f"to-{name}"]
    assert not html.select("details, .d2l-fold, .d2l-todo, .only-dark, script")


# Where a block begins is in the PDF, if something links to it; how high it is, on the sheet. Also:
# pairs of elements that have to be on one page, what begins and what comes below it.
BLOCKS = """() => {
    const pairs = [], links = document.createElement("p");
    const place = block => {
        block.id ||= `place-${links.childElementCount}`;
        const link = document.createElement("a");
        Object.assign(link, {href: `#${block.id}`, textContent: "."});
        links.append(link);
        return block.id;
    };
    const pair = (kind, above, below) => above && below && pairs.push(
        [kind, above.textContent.trim().slice(0, 40), place(above), place(below)]);
    const kinds = ":is(h1, h2, h3, h4, p, li, pre, img, tr, dt, figcaption, .katex-display)";
    const blocks = [...document.querySelectorAll(`.document ${kinds}`)]
        .map(block => [block, block.getBoundingClientRect().height, block.tagName === "H1"])
        .filter(([_, height]) => height).map(([block, ...more]) => [place(block), ...more]);
    // a figure may stand on the page after its code
    for (const cell of document.querySelectorAll(
            "div.cell:not(.long, :has(.cell_output :is(img, .d2lmini-table)))"))
        pair("cell", cell.querySelector(".cell_input"), cell.querySelector(".cell_output"));
    for (const caption of document.querySelectorAll("figure figcaption"))
        pair("caption", caption.parentElement.querySelector("img, table"), caption);
    for (const head of document.querySelectorAll(":is(h1, h2, h3, p.rubric)"))
        pair("heading", head, head.nextElementSibling);
    document.body.append(links);
    return [pairs, blocks];
}"""
MARGINS = 25 * 72 / 25.4, 20 * 72 / 25.4  # below and above the text, in points: see paper.css
EMPTY = 0.6  # of the text's height: what is left where a figure as high as allowed does not fit


def test_nothing_is_torn_at_a_seam_and_no_page_is_half_empty_within_a_chapter(sheet):
    pairs, blocks = sheet.evaluate(BLOCKS)
    reader = PdfReader(io.BytesIO(sheet.pdf(prefer_css_page_size=True)))
    places = {
        unquote(name.removeprefix("/")): (reader.get_destination_page_number(place), place.top)
        for name, place in reader.named_destinations.items()
    }
    assert len(pairs) > sheet.locator("h2").count()
    torn = [pair[:2] for pair in pairs if places[pair[2]][0] != places[pair[3]][0]]
    assert not torn
    ends, last = {}, set()
    for name, height, is_first in blocks:
        page, top = places[name]
        ends[page] = min(ends.get(page, top), float(top) - 0.75 * height)  # pixels to points
        last |= {page - 1} if is_first else set()
    last.add(max(ends))
    bottom, above = MARGINS
    room = float(reader.pages[0].mediabox.height) - bottom - above
    empty = {page + 1: round((end - bottom) / room, 2) for page, end in ends.items()}
    assert len(empty) > 100
    found = {page: share for page, share in empty.items() if share > EMPTY}
    assert {page for page in found if page - 1 not in last} == set(), f"empty, by page: {found}"


SCREEN = re.compile(r"\bfold(s|ed)?\b|slider|press Run|Under its title|Take away|Turn the query")


def test_nothing_is_said_or_shown_that_is_of_a_screen_only(html):
    """Or it says that it is: on a screen, on a web page. No code that draws precedes a figure."""
    first, *documents = html.select(".document")
    chapters = [first, *(c for c in documents if c.h1.select_one(".section-number"))]
    texts = [p.get_text() for c in chapters for p in c.select("p, li, figcaption")]
    of_screens = [text for text in texts if SCREEN.search(text)]
    assert [text for text in of_screens if not re.search("screen|web page", text)] == []
    for cell in html.select(".cell.tag_hide-input"):
        shown = cell.select_one(".cell_input") and cell.select_one(".cell_output img")
        assert not shown, cell.get_text()[:80]


def test_code_fits_its_line(sheet):
    wide = sheet.evaluate("""() => [...document.querySelectorAll("pre")].filter(code => {
        code.style.setProperty("white-space", "pre", "important");
        return code.scrollWidth > code.clientWidth + 1;
    }).map(code => code.textContent.slice(0, 60))""")
    assert len(wide) <= 1, wide
