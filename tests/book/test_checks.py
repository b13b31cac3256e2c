"""The checks of the built pages find what they are there to find."""

from tests.book import checks

GOOD = """<article><h1 id="top">A page</h1> <a href="page.html#top">here</a> <a href="#">no</a>
<a href="https://example.org/">elsewhere</a> <code>$$\\frac{1}{2}$$ {cite:t}`x`</code>
<span class="katex"><annotation>\\frac{1}{2}</annotation>costs $5</span></article>
"""
BAD = {
    '<a href="#no">x</a>': checks.broken_links,
    '<img src="no.html" alt="A">': checks.broken_links,
    "$$x$$": checks.raw_markup,
    "as in {cite:t}`someone`": checks.raw_markup,
    '<span class="katex-error">x</span>': checks.raw_markup,
}


def test_nothing_is_found_on_a_good_page_and_each_defect_by_its_check(tmp_path):
    for bad, its_check in {"": None, **BAD}.items():
        checks.soup.cache_clear(), checks.anchors.cache_clear()
        (tmp_path / "page.html").write_text(GOOD.replace("</article>", f"{bad}</article>"))
        found = [check for check in {*BAD.values()} if check(tmp_path / "page.html")]
        assert found == [its_check] * bool(bad), bad
