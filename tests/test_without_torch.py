"""Where there is no PyTorch, as in the browser: NumPy works, the rest says what to install."""

import subprocess
import sys
import textwrap

import pytest

import d2lmini

BLOCKED = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NoTorch())
"""
NEED_TORCH = [
    "AdditiveAttention",
    "AttentionRecord",
    "MultiHeadAttention",
    "QKVProjection",
    "RecordedAttention",
    "SelfAttention",
    "record_attention",
    "ring_attention",
    "ring_slices",
]


def run(code):
    """Run code where PyTorch cannot be imported, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("where", ["d2lmini", "the module itself"])
def test_a_name_that_needs_torch_says_what_to_install(where):
    modules = {
        "AdditiveAttention": "additive",
        "MultiHeadAttention": "multihead",
        "QKVProjection": "projections",
        "SelfAttention": "projections",
        "ring_attention": "distributed",
        "ring_slices": "distributed",
        "AttentionRecord": "record",
        "RecordedAttention": "record",
        "record_attention": "recording",
    }
    assert sorted(modules) == NEED_TORCH
    sources = {n: "d2lmini" if where == "d2lmini" else f"d2lmini.{m}" for n, m in modules.items()}
    said = run(f"""
        for name, module in {sources}.items():
            try:
                exec(f"from {{module}} import {{name}}")
            except ImportError as error:
                print(name, "pip install torch" in str(error), "NumPy" in str(error))
    """)
    assert said.splitlines() == [f"{name} True True" for name in sources]


def test_everything_else_can_be_imported():
    said = run("""
        import d2lmini
        for name in d2lmini.__all__:
            getattr(d2lmini, name)
        print(*d2lmini.__all__)
    """)
    assert set(d2lmini.__all__) - set(said.split()) <= set(NEED_TORCH)
    assert not set(said.split()) & set(NEED_TORCH)


def test_several_heads_and_the_cache_run_on_numpy():
    said = run("""
        import numpy as np
        from d2lmini import KeyValueCache, attention, causal_mask, merge_heads
        from d2lmini import multi_head_attention, split_heads

        x, one = np.arange(24.0).reshape(2, 3, 4), np.eye(4)
        assert (merge_heads(split_heads(x, 2)) == x).all()
        options = {"num_heads": 2, "num_kv_heads": 2, "mask": causal_mask(3, like=x)}
        output, weights = multi_head_attention(x, x, x, one, one, one, one, **options)
        heads = split_heads(x, 2)
        expected = attention(heads, heads, heads, causal=True)
        assert np.allclose(output, merge_heads(expected.output))
        assert np.allclose(weights, expected.weights)
        cache = KeyValueCache(window=2)
        for t in range(3):
            key, value = cache.append(x[:, t : t + 1], x[:, t : t + 1])
        assert (key == x[:, 1:]).all() and len(cache) == 2
        import sys
        print("torch" in sys.modules)
    """)
    assert said == "False"
