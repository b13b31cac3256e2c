"""What is right and wrong out there: the invariants of chapter 9 on functions that people use.

    python -m benchmarks.public        writes benchmarks/public.json, for the page on testing

It needs ``transformers`` and the packages of ``requirements-bench.txt``. Nothing is downloaded: the
models are built from configurations, with random weights.
"""

import json
from importlib.metadata import version
from pathlib import Path

import torch
from torch.nn import functional

from benchmarks import peers
from d2lmini.testing import check_attention, check_language_model
from d2lmini.testing.layers import of_multihead

STORED = Path(__file__).with_suffix(".json")
VOCABULARY = 7


def textbook(fill):
    """Return the lines of most tutorials, with their number for a hidden score."""

    def attend(query, key, value, mask=None, causal=False):
        scores = query @ key.mT / key.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, fill)
        if causal:
            earlier = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
            scores = scores.masked_fill(~earlier, fill)
        return scores.softmax(dim=-1) @ value

    return attend


def layer_without_weights():
    """Return the framework's layer as it is called where nobody looks at the weights."""
    layer = of_multihead(torch.nn.MultiheadAttention(8, 2, batch_first=True))

    def attend(query, key, value, attn_mask=None, key_padding_mask=None):
        options = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask}
        return layer(query, key, value, need_weights=False, **options)[0]

    return attend


def einops_lines(query, key, value):
    """Compute attention as users of einops write it."""
    return peers.with_einsum(query, key, value)


def of_d2l():
    """Return the attention of d2l, whose masks are lengths: here those of the causal rule."""
    layer = peers.d2l().DotProductAttention(dropout=0)

    def attend(query, key, value):
        lengths = torch.arange(1, query.shape[1] + 1).repeat(len(query), 1)
        return layer(query, key, value, lengths), layer.attention_weights

    return attend


def of_x_transformers(**options):
    """Return the attention of x-transformers, causal or not."""
    from x_transformers.attend import Attend

    layers = {causal: Attend(causal=causal, **options) for causal in (False, True)}

    def attend(query, key, value, mask=None, causal=False):
        if mask is not None and mask.ndim == 2:
            mask = mask[None, None]
        return layers[causal](query, key, value, mask=mask)[0]

    return attend


def of_transformers(kind, family="llama"):
    """Return what a model of transformers calls, as its mask's maker would call it."""
    import importlib

    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    home = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    function = home.eager_attention_forward if kind == "eager" else ALL_ATTENTION_FUNCTIONS[kind]
    module = torch.nn.Module().eval()
    module.num_key_value_groups, module.is_causal = 1, False

    def attend(query, key, value, attention_mask=None):
        scaling = query.shape[-1] ** -0.5
        output, weights = function(module, query, key, value, attention_mask, scaling=scaling)
        output = output.transpose(1, 2)
        return output if weights is None else (output, weights)

    return attend


FUNCTIONS = {  # name: package, how to make it, conventions that its documentation states
    "`F.scaled_dot_product_attention`": (
        "torch",
        lambda: functional.scaled_dot_product_attention,
        {"corner": "top-left"},
    ),
    "the same, masks of numbers": (
        "torch",
        lambda: functional.scaled_dot_product_attention,
        {"corner": "top-left", "mask": "additive"},
    ),
    "`nn.MultiheadAttention`": (
        "torch",
        lambda: torch.nn.MultiheadAttention(8, 2, batch_first=True),
        {"mask": "hidden"},
    ),
    "the same, weights not asked for": (
        "torch",
        layer_without_weights,
        {"mask": "hidden", "width": 8, "heads": 2},
    ),
    "the tutorials' lines, filled with −10⁹": (
        None,
        lambda: textbook(-1e9),
        {"corner": "top-left"},
    ),
    "the tutorials' lines, filled with −∞": (
        None,
        lambda: textbook(-torch.inf),
        {"corner": "top-left"},
    ),
    "three lines with `einsum`": ("einops", lambda: einops_lines, {}),
    "`DotProductAttention`": ("d2l", of_d2l, {"always_causal": True, "corner": "top-left"}),
    "`Attend`": ("x-transformers", of_x_transformers, {"shared_heads": "turns"}),
    "`Attend(flash=True)`": (
        "x-transformers",
        lambda: of_x_transformers(flash=True),
        {"shared_heads": "turns"},
    ),
    "eager, of Llama": ("transformers", lambda: of_transformers("eager"), {"mask": "additive"}),
    "eager, of GPT-2": (
        "transformers",
        lambda: of_transformers("eager", "gpt2"),
        {"mask": "additive"},
    ),
    "fused (`sdpa`)": ("transformers", lambda: of_transformers("sdpa"), {}),
}

SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
MODELS = {  # name of the configuration, what differs from SMALL
    "GPT2Config": {"n_embd": 16, "n_layer": 2, "n_head": 4},
    "LlamaConfig": {},
    "MistralConfig": {"sliding_window": 4},
    "Gemma3TextConfig": {"sliding_window": 4, "head_dim": 4},
    "DogeConfig": {},
}


def language_model(name, kind):
    """Return a random model, and how it reads chunks and padded texts."""
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, name)(**SMALL | MODELS[name])
    made = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=kind).eval()

    @torch.no_grad()
    def model(ids):
        return made(torch.as_tensor(ids)).logits

    @torch.no_grad()
    def step(ids, cache):
        found = made(torch.as_tensor(ids), past_key_values=cache, use_cache=True)
        return found.logits, found.past_key_values

    @torch.no_grad()
    def padded(ids, mask):
        return made(torch.as_tensor(ids), attention_mask=torch.as_tensor(mask).long()).logits

    return model, step, padded


def main() -> None:
    """Check all of them, and store what is broken."""
    rows = []
    for name, (package, make, said) in FUNCTIONS.items():
        report = check_attention(make(), **said)
        rows.append(row(name, package, report, said))
        print(report, "\n")
    for name in MODELS:
        for kind in ("eager", "sdpa"):
            model, step, padded = language_model(name, kind)
            report = check_language_model(model, vocabulary=VOCABULARY, step=step, padded=padded)
            rows.append(row(f"{name.removesuffix('Config')}, {kind}", "transformers", report, {}))
            print(name, kind, report, "\n")
    STORED.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf8")


def row(name, package, report, said) -> dict:
    """Return one line of the table."""
    return {
        "function": name,
        "package": package and f"{package} {version(package).partition('+')[0]}",
        "said": said,
        "held": [*report.held],
        "broken": report.names,
        "advice": report.advice,
        "exhibit": report.exhibit.name if getattr(report, "exhibit", None) else None,
    }


if __name__ == "__main__":
    main()
