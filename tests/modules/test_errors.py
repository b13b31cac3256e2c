"""What the layers turn away, and in which words: a call on each line, and what its error says.

``z(2, 3)`` are zeros of this shape; ``x`` (2, 5, 8) fits ``attend`` (8 wide, 2 heads) and ``own``;
``q``, ``k``, ``v`` fit ``add``. In the words ``…`` stands for any others.
"""

import pytest

torch = pytest.importorskip("torch")

from comparing import in_words  # noqa: E402

import d2lmini  # noqa: E402

VALUE_ERRORS = {
    # several heads
    "MultiHeadAttention(100, 3)": "embed_dim = 100 is not divisible by num_heads = 3; … 2, 4",
    "MultiHeadAttention(8, 4, num_kv_heads=3)": "num_heads = 4 … num_kv_heads = 3; … 2, 4",
    "MultiHeadAttention(0, 1)": "embed_dim must be at least 1, got 0",
    "MultiHeadAttention(8, 2, kdim=0)": "kdim must be at least 1, got 0",
    "MultiHeadAttention(8, 2, dropout=1.5)": "dropout … between 0 and 1, got 1.5",
    "attend(x, x, x[:, :3])": "5 keys and 3 values … (2, 5, 8) … (2, 3, 8)",
    "attend(x, x.repeat(2, 1, 1))": "query (2, 5, 8) and key (4, 5, 8)",
    "attend(x[..., :7])": "query must have shape (..., n, 8), got (2, 5, 7)",
    "attend(x, x[..., :3])": "key must have shape (..., n, 8), got (2, 5, 3)",
    **{
        f"attend(x, mask=yes{shape})": "mask of shape … padding_mask(lengths, 5) … 2 heads"
        for shape in [(2, 5), (2, 3, 5, 5), (6,)]
    },
    "attend(x, without=[2])": "without[0] = 2 is no head: there are 2, from 0 to 1",
    "MultiHeadAttention(8, 4, num_kv_heads=2).to_torch()": (
        "no grouped heads, and here 4 heads share 2 key-value"
    ),
    **{
        f"MultiHeadAttention.from_torch(torch.nn.MultiheadAttention(8, 2, {option}=True))": option
        for option in ("add_bias_kv", "add_zero_attn")
    },
    # one head
    "QKVProjection(8, 4, -1)": "d_v must be at least 1, got -1",
    "SelfAttention(0)": "d_model must be at least 1, got 0",
    "own(x[..., :7])": "x must have shape (..., n, 8), got (2, 5, 7)",
    "own(x, mask=yes(2, 5))": "mask of shape (2, 5) … (2, 5, 5)…padding_mask",
    "ring_slices(-1, 2, causal=False)": "length must be at least 0, got -1",
    "ring_slices(4, 0, causal=False)": "world_size must be at least 1, got 0",
    # the additive layer
    "AdditiveAttention(0, 3, 6)": "query_dim must be at least 1, got 0",
    "AdditiveAttention(4, 3, 6, dropout=2)": "dropout … between 0 and 1, got 2",
    "add(q[..., :3], k, v)": "query …(..., n, 4), got (2, 3, 3)",
    "add(q, k, v[:, :4])": "5 keys and 4 values … (2, 4, 2)",
    "add(q, k.repeat(2, 1, 1), v)": "(2, 3, 4)…(4, 5, 3)",
    "add(q, k, v, mask=yes(2, 5))": "mask of shape (2, 5) … (2, 3, 5)…padding_mask",
}
TYPE_ERRORS = {
    # several heads
    "MultiHeadAttention(8.0, 2)": "embed_dim must be an integer, got float",
    "MultiHeadAttention(8, 2, dropout='no')": "dropout must be a number, got str",
    "attend(x.numpy())": "query must be a PyTorch tensor, got a NumPy array",
    "attend([[1.0]])": "query must be a NumPy array or a PyTorch tensor, got list",
    "attend(x.float())": "query has dtype torch.float32, … torch.float64; … query.to",
    "attend(x, mask=x[0, :, :5].numpy() > 0)": "query (PyTorch) and mask (NumPy)",
    "attend(x, mask=z(5, 5))": "mask must be boolean (True = may attend), got torch.float64",
    "attend(x, causal=1)": "causal must be True or False, got int",
    "attend(x, without=[1.0])": "without[0] must be an integer, got float",
    "MultiHeadAttention.from_torch(torch.nn.Linear(8, 2))": "MultiheadAttention, got Linear",
    "attend(x, cache={})": "cache must be a KeyValueCache, got dict",
    # one head
    "QKVProjection(8, True)": "d_k must be an integer, got bool",
    "own(x.numpy())": "x must be a PyTorch tensor, got a NumPy array",
    "own(x.float())": "x has dtype torch.float32, … torch.float64",
    "own(x, mask=z(5, 5))": "boolean (True = may attend), got torch.float64",
    "ring_slices(4.0, 2, causal=False)": "length must be an integer, got float",
    # the additive layer
    "AdditiveAttention(4, 3, 1.5)": "hidden_dim must be an integer, got float",
    "add(q, k.float(), v)": "key has dtype torch.float32",
    "add(q.numpy(), k, v)": "query must be a PyTorch tensor",
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
    names["own"] = d2lmini.SelfAttention(8).double()
    names["add"] = d2lmini.AdditiveAttention(4, 3, 6).double()
    with pytest.raises(error, match=in_words(words)):
        eval(call, names)
