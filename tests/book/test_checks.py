"""The checks of the built pages find what they are there to find."""

import pytest

from tests.book import checks

GOOD = """
<meta http-equiv="Content-Security-Policy" content="script-src 'self'
 'sha256-qtc3jf64UXA5J6U02kfQ0Cvn9Uz4wXUaN3NNUVgR2v4='"><script>let x = 1;</script>
<link rel="stylesheet" href="style.css"><script src="style.css"></script>
<article><h1 id="top">A page</h1> <a href="#top">here</a> <a href="page.html#top">too</a>
<a href="https://example.org/">elsewhere</a> <a href="#">nowhere</a>
<img src="picture.png" alt="Weights of 3 keys"> <img src="picture.png" alt="" class="decorative">
<code>$$\\frac{1}{2}$$ {cite:t}`x`</code>
<span class="katex"><annotation>\\frac{1}{2}</annotation>costs $5</span></article>
"""
BAD = {
    '<a href="#nowhere">x</a>': checks.broken_links,
    '<a href="missing.html">x</a>': checks.broken_links,
    '<a href="page.html#nowhere">x</a>': checks.broken_links,
    '<img src="missing.png" alt="A picture">': checks.broken_links,
    '<script src="https://example.org/x.js"></script>': checks.loaded_from_elsewhere,
    '<script src="//example.org/x.js"></script>': checks.loaded_from_elsewhere,
    '<link rel="stylesheet" href="https://example.org/x.css">': checks.loaded_from_elsewhere,
    "<script>let y = 2;</script>": checks.forbidden_scripts,
    '<button onclick="go()">x</button>': checks.forbidden_scripts,
    '<img src="picture.png">': checks.undescribed_pictures,
    '<img src="picture.png" alt=" ">': checks.undescribed_pictures,
    '<img src="picture.png" class="decorative">': checks.undescribed_pictures,
    '<img src="picture.png" alt="../_images/a1b2.png">': checks.undescribed_pictures,
    "$$x$$": checks.raw_markup,
    r"\(x\)": checks.raw_markup,
    r"the \frac of it": checks.raw_markup,
    "as in {cite:t}`someone`": checks.raw_markup,
    "see {ref}`here`": checks.raw_markup,
    '<span class="problematic">|</span>': checks.raw_markup,
    '<span class="katex-error">x</span>': checks.raw_markup,
}
ALL = [
    checks.broken_links,
    checks.loaded_from_elsewhere,
    checks.forbidden_scripts,
    checks.undescribed_pictures,
    checks.raw_markup,
]


def write(folder, text):
    for name in ("style.css", "picture.png"):
        (folder / name).touch()
    page = folder / "page.html"
    page.write_text(text)
    return page


def test_nothing_is_found_on_a_good_page(tmp_path):
    page = write(tmp_path, GOOD)
    assert [check(page) for check in ALL] == [[] for _ in ALL]


@pytest.mark.parametrize("bad", BAD)
def test_one_defect_is_found_by_its_check(tmp_path, bad):
    page = write(tmp_path, GOOD.replace("</article>", bad + "</article>"))
    assert [check for check in ALL if check(page)] == [BAD[bad]]
