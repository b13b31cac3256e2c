"""``AttentionWall``: what heads do, in words and numbers; the wall itself, in Chromium."""

import re
from importlib.util import find_spec

import numpy as np
import pytest

from d2lmini import AttentionWall, causal_mask, softmax

WORDS = ["<s>", "the", "cat", " sat", "on", "it"]


@pytest.fixture(scope="module")
def weights():
    rng = np.random.default_rng(3)
    scores = 4 * rng.normal(size=(3, 2, 6, 6))
    scores[1, 0] += 40 * np.eye(6, k=-1)  # looks one back
    return softmax(np.where(causal_mask(6), scores, -1e9)) * np.where(causal_mask(6), 1, np.nan)


def test_habits_are_means_over_the_queries_that_have_a_choice(weights):
    wall = AttentionWall(weights, WORDS)
    for name, key in (
        ("previous token", lambda i: i - 1), ("token itself", lambda i: i),
        ("first token", lambda i: 0),
    ):  # fmt: skip
        expected = sum(weights[:, :, i, key(i)] for i in range(2, 6)) / 4
        np.testing.assert_allclose(wall.habits[f"the {name}"], expected)
    count = (wall.habits["the previous token"] > 0.5).sum()
    assert f"the previous token: {count} heads more than half" in str(wall)
    assert "most of all layer 1, head 0 (1.00)" in str(wall)


def test_a_page_for_twelve_layers_of_twelve_heads_is_small_and_alone(tmp_path):
    numbers = softmax(np.random.default_rng(0).normal(size=(12, 12, 30, 30)))
    page = AttentionWall(numbers).save(tmp_path / "wall.html", title="<b>").read_text("utf8")
    assert len(page.encode()) <= 300_000, "what a mail or a page carries without a thought"
    assert "<title>&lt;b&gt;</title>" in page
    assert not re.search(r"""(?:src|href)=|url\(|@import|https?://|fetch""", page)


@pytest.mark.skipif(find_spec("playwright") is None, reason="Playwright brings the browser")
def test_in_a_browser_it_says_and_sorts_what_python_finds(weights, chromium, tmp_path):
    page = chromium.new_page()
    wall = AttentionWall(weights, WORDS)
    page.goto(wall.save(tmp_path / "wall.html").as_uri())
    heads = page.locator(".d2lmini-heads button")
    assert heads.count() == 6 and page.locator(".d2lmini-heads [tabindex='0']").count() == 1
    page.get_by_role("button", name="layer 1, head 0").focus()
    says = page.locator("[role=status]")
    assert "Layer 1, head 0: “it” looks at “on” with 1.00" in says.inner_text()
    page.get_by_label("asked from").select_option("3")
    for layer, head in np.ndindex(3, 2):
        page.get_by_role("button", name=f"layer {layer}, head {head}").focus()
        key = np.nanargmax(weights[layer, head, 3])
        token = WORDS[key].replace(" ", "␣")
        number = f"“{token}” with {weights[layer, head, 3, key]:.2f}"
        assert number in says.inner_text()
    page.keyboard.press("Home")
    assert says.inner_text().startswith("Layer 0, head 0")
    page.get_by_role("button", name="look at the previous token").click()
    assert heads.first.get_attribute("aria-label") == "layer 1, head 0"
    faint = (wall.habits["the previous token"] <= 0.5).sum()
    assert page.locator(".d2lmini-faint").count() == faint
    painted = "e => [...e.querySelector('canvas').getContext('2d').getImageData(0, 0, 6, 6).data]"
    alpha = np.reshape(heads.first.evaluate(painted), (6, 6, 4))[..., 3]
    np.testing.assert_array_equal(alpha > 0, causal_mask(6))  # what is masked stays empty
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.close()
