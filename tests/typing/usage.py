"""Typical code of a user, for a type checker: it is not run.

A line that a type checker has to refuse ends in ``#`` and ``refused``; all others have to pass.
``assert_type`` says what an editor knows of a result.
"""

from typing import Any, assert_type

import numpy as np
import torch
from numpy.typing import NDArray

import d2lmini as d

numbers: NDArray[np.float64] = np.eye(3)
counts: NDArray[np.int64] = np.arange(9).reshape(3, 3)
tensor: torch.Tensor = torch.eye(3)

# NumPy in, NumPy out

output, weights = d.attention(numbers, numbers, numbers, causal=True)
assert_type(output, NDArray[Any])
row: NDArray[np.float64] = output[0]
result: d.Attention[NDArray[np.float64]] = d.attention(numbers, numbers, numbers)
result = d.nadaraya_watson(numbers, numbers, numbers, kernel="boxcar", width=2.0)
result = d.multi_head_attention(
    numbers, numbers, numbers, numbers, numbers, numbers, numbers, num_heads=3
)
scores: NDArray[np.float64] = d.scaled_dot_product_score(counts, numbers, scale=2.0)
probabilities: NDArray[np.float64] = d.masked_softmax(scores, d.causal_mask(3, like=scores))
padding: NDArray[np.bool_] = d.padding_mask(np.array([1, 2]), 3)
window = d.sliding_window_mask(3, window=2, like=scores)
d.attention(numbers, numbers, numbers, mask=padding[:, 0] & window)
d.attention(numbers, numbers, numbers, score=d.cosine_score)
d.attention(numbers, numbers, numbers, score=lambda q, k: d.gaussian_score(q, k, width=2.0))

assert_type(d.causal_mask(3), NDArray[Any])
result = d.attention(numbers, numbers, numbers, scale=0.5, bias=d.alibi_bias(1, 3)[0])
turned: NDArray[np.float64] = d.rotary(numbers[:, :2], layout="halves", positions=counts[0])

# PyTorch in, PyTorch out

found = d.attention(tensor, tensor, tensor, mask=d.causal_mask(3, like=tensor))
assert_type(found, d.Attention[torch.Tensor])
assert_type(found.output, torch.Tensor)
loss: torch.Tensor = found.weights.sum()
assert_type(d.softmax(tensor, axis=0), torch.Tensor)
assert_type(d.additive_score(tensor, tensor, tensor, tensor, tensor[0]), torch.Tensor)
layer = d.MultiHeadAttention(4, 2, num_kv_heads=1)
cache = d.KeyValueCache(window=8, sinks=2)
assert_type(layer.to_torch(), torch.nn.MultiheadAttention)
assert_type(layer(tensor, causal=True, cache=cache).output, torch.Tensor)
assert_type(layer(tensor).weights, torch.Tensor | None)
assert_type(layer(tensor, need_weights=True).weights, torch.Tensor)
layer(tensor).weights.sum()  # refused
query, key, value = d.QKVProjection(4)(tensor)
assert_type(d.AdditiveAttention(3, 3, 8)(query, key, value).output, torch.Tensor)
key, value = cache.append(key, value)
assert_type(key, torch.Tensor)

# Another model, recorded

with d.record_attention(torch.nn.Linear(2, 2), without={"": [0]}, keep="*") as record:
    pass
assert_type(record, d.AttentionRecord)
assert_type(record["layers.*"].stack(item=1), torch.Tensor)
assert_type(record[0], d.RecordedAttention)
d.record_attention("gpt2")  # refused
d.record_attention(without={0: 3})  # refused

# Looking things up

store = d.KeyValueStore(["Alice", "Bruno"], [32.0, 58.0])
encode = d.TrigramEncoder(["Alice", "Bruno"])
answer = store.attend("Alicia", encode=encode, score=d.cosine_score, temperature=0.5)
share: NDArray[np.float64] = answer.weights
names, incomes = d.load_incomes()
assert_type(names, tuple[str, ...])

# What is wrong

d.attention("query", 3, None)  # refused
d.attention([[1.0]], [[1.0]], [[1.0]])  # refused
d.attention(numbers, tensor, numbers)  # refused by mypy
d.attention(numbers, numbers, numbers, mask=tensor)  # refused by mypy
d.attention(numbers, numbers, numbers, mask="causal")  # refused
d.attention(numbers, numbers, numbers, causal="yes")  # refused
d.attention(numbers, numbers, numbers, score="dot")  # refused
d.attention(numbers, numbers, numbers, masks=padding)  # refused
x: int = d.attention(numbers, numbers, numbers).output  # refused
y: int = d.softmax(numbers)  # refused
d.softmax(3)  # refused
d.nadaraya_watson(numbers, numbers, numbers, kernel="gausian")  # refused
d.causal_mask("3", like=numbers)  # refused
layer(numbers)  # refused
layer(tensor, need_weight=True)  # refused
d.MultiHeadAttention(4, heads=2)  # refused
d.KeyValueStore(["Alice"], [1.0]).attend(3, encode=encode)  # refused
print(d.no_such_name)  # refused
