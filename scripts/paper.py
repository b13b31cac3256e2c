"""Bind the page that holds the whole book (Sphinx's builder singlehtml) for paper.

It becomes book.html, which `scripts/pdf.py` prints: a title page, the contents, then the chapters,
with their hints, answers and solutions at the end. Sentences of the book are printed as they stand:
what is true on a screen alone says so. How a single page is printed, `print.css` says.
"""

import copy
import html
import re
from collections import Counter
from pathlib import Path

import yaml
from bs4 import BeautifulSoup, Tag

from _ext.public import changed

STYLE = Path(__file__).with_suffix(".css")
NARROW = re.compile(r"@media\s*\(max-width:[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
HEADERLINK = ".headerlink"
PAGE_WITHIN = '.toctree-wrapper > span[id^="document-"]'  # one that another page lists
DRAWN = ".cell_output :is(img, svg, table)"
LICENCE = "Text and figures: CC BY 4.0. Code: MIT licence."
ANSWERS = "Hints, answers and solutions"
LONGEST = 48  # lines of a cell that is kept on one page
WIDEST = 82  # letters of a line of code that is set in full size
MOST = 5  # rows and columns of folded numbers that are worth their paper


class Book:
    """The whole book on one page, on its way to paper."""

    def __init__(self, page: str, title: str, facts: list[str]) -> None:
        self.page = BeautifulSoup(page, "html.parser")
        self.title, self.facts = title, facts
        article = self.page.article
        root = article.find("section")
        self.documents = [root]
        marks = root.select(PAGE_WITHIN)
        depths = [len(mark.find_parents(class_="toctree-wrapper")) for mark in marks]
        for mark, depth in zip(marks, depths, strict=True):
            if depth > 1:
                continue  # it stays in the page that lists it
            section = mark.find_next_sibling("section")
            section.insert(0, mark.extract())
            self.documents.append(section.extract())
        for rest in root.select(".toctree-wrapper, .start, script"):
            rest.decompose()
        for document in self.documents:
            for table in document.select("table.autosummary"):
                table.find_parent("section").decompose()  # the pages that it lists follow

    def tag(self, name: str, text: str = "", **attributes: str) -> Tag:
        """Return a new element; `class_` is its class."""
        attributes = {key.rstrip("_"): value for key, value in attributes.items()}
        new = self.page.new_tag(name, attrs=attributes)
        if text:
            new.append(BeautifulSoup(text, "html.parser"))
        return new

    def bind(self) -> str:
        """Return the page to print."""
        self.mend_links()
        heads = []
        for number, document in enumerate(self.documents):
            self.unfold(document)
            if number:  # a chapter is no longer a part of the first page
                for level in range(2, 7):
                    for heading in document.find_all(f"h{level}"):
                        heading.name = f"h{level - 1}"
                if document.h1.select_one(".section-number"):
                    self.answers_last(document, number)
                else:
                    self.open_folds(document)
            else:
                cover = self.cover(document)
            heads.append(self.set_up(document, number))
        main = self.tag("main", class_="content reading")
        main.extend([cover, self.contents(), *self.documents])
        for needless in main.select(f"{HEADERLINK}, .only-dark, .cell_output:has(.d2l-todo)"):
            needless.decompose()
        self.page.html["data-theme"] = "light"
        self.page.body.replace_with(body := self.tag("body"))
        body.append(main)
        head = self.page.head
        for needless in head.select("script, style, noscript, link:not([href*='style.css'])"):
            needless.decompose()
        head.append(style := self.tag("style"))
        style.string = STYLE.read_text("utf8") + "\n".join(heads)
        return str(self.page)

    def set_up(self, document: Tag, number: int) -> str:
        """Name the kind of a document for the style; return the rule for the foot of its pages."""
        heading, lead = document.h1, document.h1.find_next_sibling("p")
        looked_up = number and not heading.select_one(".section-number")
        document["class"] = "document lookup" if looked_up else "document"
        document["style"] = f"page: document-{number}"
        if lead and lead.em and lead.get_text() == lead.em.get_text():
            lead["class"] = "lead"
        name = words(heading).get_text().replace('"', "'")
        return f'@page document-{number} {{ @bottom-left {{ content: "{name}" }} }}'

    def mend_links(self) -> None:
        """Give each place one name, and each link the name of its place."""
        pages = [
            *self.documents,
            *(mark.find_next("section") for d in self.documents for mark in d.select(PAGE_WITHIN)),
        ]
        titles = {
            words(page.find(["h1", "h2", "h3"]), numbered=False).get_text(): page for page in pages
        }
        places = [
            {tag["id"]: tag for tag in [document, *document.find_all(id=True)] if tag.get("id")}
            for document in self.documents
        ]
        named = Counter(name for place in places for name in place)
        for number, place in enumerate(places):
            for name, tag in place.items():
                if named[name] > 1:
                    tag["id"] = f"{name}-{number}"
        works = {
            name: tag
            for place in places
            for name, tag in place.items()
            if "citation" in tag.get("class", [])
        }
        everywhere = {name: tag for place in reversed(places) for name, tag in place.items()}
        for number, document in enumerate(self.documents):
            for link in document.select('a[href*="#"]:not(.external)'):
                before, _, name = link["href"].partition("#")
                where = [places[number], works, everywhere]
                if name.startswith("#"):  # to a page, whose name is lost but for its title
                    name = name[1:]
                    where = [{name: titles[link.get_text()]}]
                elif before:
                    where = where[1:]
                found = next(place[name] for place in where if name in place)
                link["href"] = f"#{found['id']}"

    def unfold(self, document: Tag) -> None:
        """Open what a script would open, and leave out what only a screen can show."""
        for fold in document.select(".d2lmini-figure details"):
            rows = fold.find_all("tr")
            if len(rows) > MOST + 1 or len(rows[0].find_all(["td", "th"])) > MOST + 1:
                fold.decompose()
            else:
                fold.summary.decompose()
                fold.unwrap()
        for fold in document.select("details.hide"):
            if fold.parent.select_one(DRAWN):  # a reader of paper cannot open how it is drawn
                fold.decompose()
                continue
            fold.summary.decompose()
            fold.unwrap()
        for cell in document.select("div.cell"):
            lines = cell.get_text().count("\n") + sum(
                int(image["height"]) / 15 for image in cell.select("img.only-light")
            )
            cell["class"] += ["long"] if lines > LONGEST else []
            cell["class"] += ["your-turn"] if cell.select_one(".d2l-check") else []
        for drawing in document.select(".explorable"):
            drawing.decompose()  # it stands beside a figure, and says what to move
        for code in document.find_all("pre"):
            if max(map(len, code.get_text().split("\n"))) > WIDEST:
                code["class"] = "wide"

    def open_folds(self, document: Tag) -> None:
        """Open the folds of a page on which things are looked up, where they stand."""
        for fold in document.select("section > details"):
            title = fold.summary
            title.name, title["class"] = "p", "rubric"
            fold.unwrap()

    def answers_last(self, document: Tag, number: int) -> None:
        """Move the answers to the end, each with a link to its question, and from there."""
        groups: dict[int, tuple[Tag, Tag]] = {}  # of each question: its first words, its answers
        kinds = ".cell:has(.d2l-fold), .cell.tag_hide-cell, section > details"
        blocks = document.select(kinds)
        known = {id(block) for block in blocks}
        for block in blocks:
            if any(id(around) in known for around in block.parents):
                continue  # it goes with the fold that it is in
            question = question_of(block)
            if id(question) not in groups:
                name = f"answers-{number}-{len(groups) + 1}"
                question["id"] = f"to-{name}"
                answers = self.tag("div", class_="answers", id=name)
                groups[id(question)] = question, answers
                see = f'<a href="#{name}">Answer on page <span data-page="{name}">000</span></a>'
                if question.name == "p":
                    question.append(self.tag("span", see, class_="see"))
                else:
                    block.insert_before(self.tag("p", see, class_="see"))
            groups[id(question)][1].extend(self.answer(block.extract()))
        if not groups:
            return
        last = self.tag("section", id=f"answers-{number}", class_="answers-all")
        last.append(self.tag("h2", ANSWERS))
        for question, answers in groups.values():
            title = words(question if question.name != "p" else question.strong)
            section = question.parent.find(["h2", "h3", "h4"]).select_one(".section-number")
            if question.name == "p" and section:
                title.insert(0, copy.copy(section))
            to = self.tag("p", class_="to")
            to.append(self.tag("a", title.decode_contents(), href=f"#{question['id']}"))
            answers.insert(0, to)
            last.append(answers)
        document.append(last)

    def answer(self, block: Tag) -> list[Tag]:
        """Return what a block says, without what folds it."""
        for inner in block.select("details:not(.d2l-fold)"):
            inner.name, inner.summary.name = "div", "p"
        if block.name == "details":
            title = block.summary.extract().get_text(strip=True)
            block.name = "div"
            block["class"] = "answer"
            if title != "Answer":
                block.insert(0, self.tag("p", f"<em>{title.removeprefix('Answer: ')}</em>"))
            return [block]
        folds = block.select(".d2l-fold")
        if not folds:
            return [block]
        if code := folds[0].select_one(".highlight"):
            return [code.extract()]
        hints = self.tag("ol", class_="hints")
        for fold in folds:
            hints.append(self.tag("li", fold.p.decode_contents()))
        return [hints]

    def cover(self, first: Tag) -> Tag:
        """Take the title page out of the first document, and return it."""
        first.h1.string = "About this book"
        cover = self.tag("section", class_="cover")
        cover.append(self.tag("p", html.escape(self.title), class_="title"))
        cover.append(self.tag("p", first.p.extract().get_text(), class_="promise"))
        if idea := first.select_one(".idea img.only-light"):
            cover.append(copy.copy(idea))
        for fact in filter(None, self.facts):
            cover.append(line := self.tag("p", class_="fact"))
            line.string = fact  # an address is no markup
        return cover

    def contents(self) -> Tag:
        """Return the list of chapters and sections, with room for the numbers of their pages.

        Of the pages on which things are looked up, those that other pages are part of.
        """
        contents = self.tag("nav", class_="in-this-book")
        contents.append(self.tag("h1", "Contents"))
        for document in self.documents:
            whole = "lookup" not in document["class"].split() or document.select(PAGE_WITHIN)
            for heading in document.find_all(["h1", "h2"] if whole else "h1"):
                name = heading.find_parent("section")["id"]
                row = self.tag("a", href=f"#{name}", class_=f"level-{heading.name}")
                row.append(self.tag("span", words(heading).decode_contents()))
                row.append(self.tag("span", "000", **{"data-page": name}))
                contents.append(row)
        return contents


def question_of(block: Tag) -> Tag:
    """Return what an answer answers: the question before it, or its heading."""
    before = block.find_previous_siblings(["p", "h1", "h2", "h3", "h4"])
    for tag in before:
        if tag.name != "p" or (tag.strong and re.match(r"\d+\. ", tag.get_text())):
            return tag
    return block.find_previous(["h1", "h2", "h3", "h4"])


def words(heading: Tag, numbered: bool = True) -> Tag:
    """Return a copy of a heading, or of a chapter's title, without the link to itself or number."""
    heading = copy.copy(heading.select_one(".topic") or heading)
    for needless in heading.select(HEADERLINK if numbered else f"{HEADERLINK}, .section-number"):
        needless.decompose()
    return heading


def bind(folder: Path, root: Path) -> Path:
    """Make a book of the page in the folder where it was built; return its path."""
    config = yaml.safe_load((root / "_config.yml").read_text("utf8"))
    settings = config["sphinx"]["config"]
    style = folder / "_static" / "style.css"
    style.write_text(NARROW.sub("", style.read_text("utf8")), "utf8")  # paper is no phone
    day = changed(root, ".")
    edition = f"Version {settings['version']}" + (f", {day}" if day else "")
    facts = [config["author"], edition, LICENCE, settings["public"]["address"]]
    page = (folder / "chapters/index.html").read_text("utf8")
    # The page is written for the folder above the one in which Sphinx puts it.
    book = folder / "book.html"
    book.write_text(Book(page, config["title"], facts).bind(), "utf8")
    return book
