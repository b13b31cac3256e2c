"""`record_attention` on models of transformers, built at random from small configurations.

Collected where transformers is installed (conftest.py): once a week, in the job "models".
"""

import pytest
import torch
import transformers

from d2lmini import record_attention

pytestmark = pytest.mark.weekly

SMALL = {"num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 4}
LLAMA = {**SMALL, "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": 99}
BART = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "vocab_size": 99}
BART |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48}
BART |= {"decoder_ffn_dim": 48, "max_position_embeddings": 64}
MODELS = {
    "GPT2LMHeadModel": {"n_layer": 3, "n_embd": 32, "n_head": 4, "vocab_size": 99},
    "LlamaForCausalLM": LLAMA,
    "Gemma3ForCausalLM": {**LLAMA, "head_dim": 8, "sliding_window": 4},
    "BertModel": {**SMALL, "intermediate_size": 48, "vocab_size": 99},
    "BartForConditionalGeneration": BART,
}
# Where a model that multiplies by hand returns its weights, and which modules they are of.
SIDES = {
    "encoder_attentions": ("encoder.", "self"),
    "decoder_attentions": ("decoder.", "self"),
    "cross_attentions": ("decoder.", "enc"),
    "attentions": ("", ""),
}


def model_of(name):
    cls = getattr(transformers, name)
    torch.manual_seed(3)
    model = cls(cls.config_class(**MODELS[name])).eval()
    assert model.config._attn_implementation == "sdpa", "the default kernel"
    return model


def inputs_of(name):
    """Return a batch of two, the second padded."""
    tokens = torch.randint(3, 99, (2, 7), generator=torch.Generator().manual_seed(5))
    mask = torch.ones_like(tokens)
    mask[1, :2] = 0
    inputs = {"input_ids": tokens, "attention_mask": mask}
    return inputs | ({"decoder_input_ids": tokens[:, :5]} if name.startswith("Bart") else {})


def run(model, inputs, **options):
    with torch.no_grad():
        return model(**inputs, **options)


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_those_of_eager_attention_and_the_output_is_the_same(name):
    model, inputs = model_of(name), inputs_of(name)
    alone = run(model, inputs)[0]
    with record_attention(model) as record:
        output = run(model, inputs)[0]
    assert torch.equal(alone, output)
    assert record.unseen == []
    model.set_attn_implementation("eager")
    with record_attention(model) as unseen:
        eager = run(model, inputs, output_attentions=True)
    assert unseen.unseen[0].endswith('first call model.set_attn_implementation("sdpa")')
    compared = 0
    for side, (where, what) in SIDES.items():
        found = [
            call.weights
            for call in record
            if where in call.name and what in call.name.rpartition(".")[-1].lower()
        ]
        for ours, theirs in zip(found, getattr(eager, side, None) or [], strict=False):
            real = ours.sum(-1) > 0.5  # a padding's query sees no key: transformers spreads it
            assert torch.equal(real, real[:, :1].expand_as(real)) and real.any(-1).all()
            worst = float((ours - theirs).abs()[real].max())
            assert worst < 1e-6, f"{side}: {worst}"
            compared += 1
    assert compared == len(record) > 1
