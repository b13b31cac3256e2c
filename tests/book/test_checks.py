"""The checks of the built pages find what they are there to find."""

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
    checks.broken_links: [
        '<a href="#no">x</a>',
        '<a href="no.html">x</a>',
        '<img src="no" alt="A">',
    ],
    checks.loaded_from_elsewhere: ['<script src="//example.org/x.js"></script>'],
    checks.forbidden_scripts: ["<script>let y = 2;</script>", '<a onclick="go()">x</a>'],
    checks.undescribed_pictures: [
        *('<img src="picture.png">', '<img src="picture.png" alt=" ">'),
        *(
            '<img src="picture.png" class="decorative">',
            '<img src="picture.png" alt="../a1b2.png">',
        ),
    ],
    checks.raw_markup: [
        *("$$x$$", r"\(x\)", r"the \frac of it", "as in {cite:t}`someone`"),
        *('<span class="problematic">|</span>', '<span class="katex-error">x</span>'),
    ],
}


def test_nothing_is_found_on_a_good_page_and_each_defect_by_its_check(tmp_path):
    def found(text):
        checks.soup.cache_clear(), checks.anchors.cache_clear()
        (tmp_path / "page.html").write_text(text)
        return [check for check in BAD if check(tmp_path / "page.html")]

    for name in ("style.css", "picture.png"):
        (tmp_path / name).touch()
    assert found(GOOD) == []
    for check, defects in BAD.items():
        for bad in defects:
            assert found(GOOD.replace("</article>", f"{bad}</article>")) == [check], bad
