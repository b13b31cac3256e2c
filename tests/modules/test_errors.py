"""What the layers turn away, and in which words: a call on each line, and what its error says.

``z(2, 3)`` are zeros of this shape; ``x`` (2, 5, 8) fits ``attend`` (8 wide, 2 heads), ``project``
and ``own``; ``q``, ``k``, ``v`` fit ``add``. In the words ``…`` stands for any others.
"""

import pytest

torch = pytest.importorskip("torch")

from comparing import in_words  # noqa: E402

import d2lmini  # noqa: E402

VALUE_ERRORS = {
    # several heads
    "MultiHeadAttention(100, 3)": "embed_dim = 100 is not divisible by num_heads = 3; … 2, 4",
    "MultiHeadAttention(8, 4, num_kv_heads=3)": "num_heads = 4 … num_kv_heads = 3; … 2, 4",
    "MultiHeadAttention(8, 2, num_kv_heads=4)": "num_heads = 2 … num_kv_heads = 4",
    "MultiHeadAttention(0, 1)": "embed_dim must be at least 1, got 0",
    "MultiHeadAttention(8, 0)": "num_heads must be at least 1, got 0",
    "MultiHeadAttention(8, -2)": "num_heads must be at least 1, got -2",
    "MultiHeadAttention(8, 2, kdim=0)": "kdim must be at least 1, got 0",
    "MultiHeadAttention(8, 2, dropout=1.5)": "dropout … between 0 and 1, got 1.5",
    "MultiHeadAttention(8, 2, dropout=-0.1)": "dropout … between 0 and 1, got -0.1",
    "attend(x, x, x[:, :3])": "5 keys and 3 values … (2, 5, 8) … (2, 3, 8)",
    "attend(x, x.repeat(2, 1, 1))": "query (2, 5, 8) and key (4, 5, 8)",
    "attend(x[..., :7])": "query must have shape (..., n, 8), got (2, 5, 7)",
    "attend(x, x[..., :3])": "key must have shape (..., n, 8), got (2, 5, 3)",
    "attend(x, x, x[..., :3])": "value must have shape … 8), got (2, 5, 3)",
    "attend(x[0, 0])": "query must have shape (..., n, 8), got (8,)",
    **{
        f"attend(x, mask=yes{shape})": "mask of shape … padding_mask(lengths, 5) … 2 heads"
        for shape in [(2, 5), (4, 5), (3, 1, 5), (2, 3, 5, 5), (1, 2, 2, 5, 5), (6,)]
    },
    "attend(x, without=[2])": "without[0] = 2 is no head: there are 2, from 0 to 1",
    "attend(x, without=[0, -1])": "without[1] must be at least 0, got -1",
    "MultiHeadAttention(8, 4, num_kv_heads=2).to_torch()": (
        "no grouped heads, and here 4 heads share 2 key-value"
    ),
    # one head
    **{
        f"{module}({sizes})": said
        for module in ("QKVProjection", "SelfAttention")
        for sizes, said in [
            ("0", "d_model must be at least 1, got 0"),
            ("8, 0", "d_k must be at least 1, got 0"),
            ("8, 4, -1", "d_v must be at least 1, got -1"),
        ]
    },
    **{
        f"{call}({given})": f"x must have shape (..., n, 8), got {shape}"
        for call in ("project", "own")
        for given, shape in [("x[..., :7]", "(2, 5, 7)"), ("x[0, 0]", "(8,)")]
    },
    "own(x, mask=yes(2, 5))": "mask of shape (2, 5) … (2, 5, 5)…padding_mask",
    "ring_slices(-1, 2, causal=False)": "length must be at least 0, got -1",
    "ring_slices(4, 0, causal=False)": "world_size must be at least 1, got 0",
    # the additive layer
    "AdditiveAttention(0, 3, 6)": "query_dim must be at least 1, got 0",
    "AdditiveAttention(4, -1, 6)": "key_dim must be at least 1, got -1",
    "AdditiveAttention(4, 3, 6, dropout=2)": "dropout … between 0 and 1, got 2",
    "add(q[..., :3], k, v)": "query …(..., n, 4), got (2, 3, 3)",
    "add(q, k[..., :2], v)": "key …(..., n, 3), got (2, 5, 2)",
    "add(q, k, v[:, :4])": "5 keys and 4 values … (2, 4, 2)",
    "add(q, k.repeat(2, 1, 1), v)": "(2, 3, 4)…(4, 5, 3)",
    "add(q, k, v[0, 0])": "value … got (2,)",
    "add(q, k, v, mask=yes(2, 5))": "mask of shape (2, 5) … (2, 3, 5)…padding_mask",
}
TYPE_ERRORS = {
    # several heads
    "MultiHeadAttention(8.0, 2)": "embed_dim must be an integer, got float",
    "MultiHeadAttention(8, True)": "num_heads must be an integer, got bool",
    "MultiHeadAttention(8, 2, vdim='3')": "vdim must be an integer, got str",
    "MultiHeadAttention(8, 2, dropout='no')": "dropout must be a number, got str",
    "attend(x.numpy())": "query must be a PyTorch tensor, got a NumPy array",
    "attend(x, x, x.numpy())": "value must be a PyTorch tensor, got a NumPy array",
    "attend([[1.0]])": "query must be a NumPy array or a PyTorch tensor, got list",
    "attend(x.to(torch.complex128))": "query must hold real numbers, got torch.complex128",
    "attend(x.float())": "query has dtype torch.float32, … torch.float64; … query.to",
    "attend(x, mask=x[0, :, :5].numpy() > 0)": "query (PyTorch) and mask (NumPy)",
    "attend(x, mask=[[True]])": "mask must be a NumPy array or a PyTorch tensor",
    "attend(x, causal=1)": "causal must be True or False, got int",
    "attend(x, need_weights='no')": "need_weights must be True or False, got str",
    "attend(x, without=[1.0])": "without[0] must be an integer, got float",
    "attend(x, cache={})": "cache must be a KeyValueCache, got dict",
    # one head
    **{
        f"{module}({sizes})": said
        for module in ("QKVProjection", "SelfAttention")
        for sizes, said in [
            ("8.0", "d_model must be an integer, got float"),
            ("8, True", "d_k must be an integer, got bool"),
        ]
    },
    **{
        f"{call}(x.{given})": f"x {said}"
        for call in ("project", "own")
        for given, said in [
            ("numpy()", "must be a PyTorch tensor, got a NumPy array"),
            ("float()", "has dtype torch.float32, … torch.float64"),
            ("to(torch.complex128)", "must hold real numbers, got torch.complex128"),
        ]
    },
    "own(x, mask=z(5, 5))": "boolean (True = may attend), got torch.float64",
    "own(x, causal='yes')": "causal must be True or False, got str",
    "ring_slices(4.0, 2, causal=False)": "length must be an integer, got float",
    "ring_slices(4, 2, causal=1)": "causal must be True or False, got int",
    # the additive layer
    "AdditiveAttention(4, 3, 1.5)": "hidden_dim must be an integer, got float",
    "add(q, k.float(), v)": "key has dtype torch.float32",
    "add(q, k, v.float())": "value has dtype torch.float32",
    "add(q.numpy(), k, v)": "query must be a PyTorch tensor",
    "add(q, k, v.numpy())": "value must be a PyTorch tensor",
    "add(q, k, [[1.0]])": "value must be a NumPy array or a PyTorch tensor",
    "add(q, k, v, mask=yes(3, 5).long())": "boolean (True = may attend), got torch.int64",
}
ROWS = [(call, ValueError, words) for call, words in VALUE_ERRORS.items()]
ROWS += [(call, TypeError, words) for call, words in TYPE_ERRORS.items()]


@pytest.mark.parametrize("need_weights", [False, True], ids=["fused", "weights"])
@pytest.mark.parametrize("call, error, words", ROWS, ids=[call for call, _, _ in ROWS])
def test_it_is_turned_away_in_words(call, error, words, need_weights):
    z = lambda *shape: torch.zeros(shape, dtype=torch.float64)  # noqa: E731
    layer = d2lmini.MultiHeadAttention(8, 2).double()
    names = {name: getattr(d2lmini, name) for name in d2lmini.__all__}
    names |= {"torch": torch, "z": z, "yes": lambda *shape: z(*shape) == 0, "x": z(2, 5, 8)}
    names |= {"q": z(2, 3, 4), "k": z(2, 5, 3), "v": z(2, 5, 2)}
    names["attend"] = lambda *given, **options: layer(
        *given, **{"need_weights": need_weights, **options}
    )
    names["project"] = d2lmini.QKVProjection(8).double()
    names["own"] = d2lmini.SelfAttention(8).double()
    names["add"] = d2lmini.AdditiveAttention(4, 3, 6).double()
    with pytest.raises(error, match=in_words(words)):
        eval(call, names)
