"""The page of measurements is made from what was measured, and what is compared is comparable.

Nothing here asserts a time.
"""

import json

import pytest

torch = pytest.importorskip("torch")

from benchmarks import measure, peers, public  # noqa: E402

STORED = json.loads(measure.FOUND.read_text("utf8"))


def test_the_page_is_what_was_measured():
    assert measure.PAGE.read_text("utf8") == measure.page(STORED)


def test_every_bar_is_computed_from_what_was_measured():
    for (what, value, bar), stored in zip(measure.bars(STORED), STORED["bars"], strict=True):
        assert measure.rounded([what, bar]) == [stored[0], stored[2]]
        assert value == pytest.approx(stored[1], rel=0.02)  # of rounded numbers


def test_the_table_of_public_functions_is_what_their_check_finds():
    """Of those that are installed here; each run of `benchmarks.public` checks the others too."""
    stored = {one["function"]: one for one in json.loads(public.STORED.read_text("utf8"))}
    assert {*public.FUNCTIONS} <= {*stored}
    for name, (package, make, said) in public.FUNCTIONS.items():
        if package in (None, "torch"):
            found = public.row(name, package, public.check_attention(make(), **said), said)
            assert found == stored[name]


def test_chapter_8_draws_what_was_measured():
    notebook = json.loads(
        (measure.ROOT / "chapters" / "08-attention-at-scale.ipynb").read_text("utf8")
    )
    (cell,) = ("".join(c["source"]) for c in notebook["cells"] if c["id"] == "wall")
    for line in measure.drawn_lines(STORED):
        assert line in cell, "put this line into the cell of Figure 8.1, and store it"


def test_what_is_compared_computes_the_same():
    arrays = measure.inputs((2, 3, 5, 4))
    query, key, value = (torch.from_numpy(x) for x in arrays)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(peers.naive(query, key, value), expected)
    torch.testing.assert_close(torch.from_numpy(peers.naive_numpy(*arrays)), expected)
