"""What is turned away, and in which words: a call on each line, and what its error says.

``z(2, 3)`` are zeros of this shape; in the words ``…`` stands for any others. Each check stands
here once for each function that makes it.
"""

import numpy as np
import pytest
from comparing import in_words

import d2lmini

VALUE_ERRORS = {
    # weights
    "softmax(z(2, 3, 4), axis=3)": "axis must be … 3 axes … got 3",
    "masked_softmax(z(2, 3, 4), axis=3)": "axis must be … 3 axes … got 3",
    "masked_softmax(z(2, 3, 5), yes(2, 5))": "mask of shape (2, 5) … (2, 3, 5)…padding_mask",
    "masked_softmax(z(2, 2, 3, 4), padding_mask(i([1, 2]), 4))": "for items",
    # scores
    "bilinear_score(z(2, 3), z(4, 6), z(6, 3))": "weight …(d_q, d_k) = (3, 6), got (6, 3)",
    "additive_score(z(2, 3), z(4, 6), z(3, 4), z(6, 5), z(5))": "w_q must …(3, 5), got (3, 4)",
    "additive_score(z(2, 3), z(4, 6), z(3, 5), z(3, 5), z(5))": "w_k must …(6, 5), got (3, 5)",
    "additive_score(z(2, 3), z(4, 6), z(3, 5), z(6, 5), z(5, 1))": "w_v must have shape …(5, 1)",
    "gaussian_score(z(1, 1), z(1, 1), width=0)": "width must be …, got 0",
    "gaussian_score(z(1, 1), z(1, 1), width=10**400)": "width must be finite",
    "scaled_dot_product_score(z(1, 2), z(1, 2), scale=nan)": "scale must be finite, got nan",
    # attention
    "attention(z(3), z(5, 4), z(5, 2))": "query must have at least 2 axes … query[None, :]",
    "attention(z(3, 4), z(5, 4), z(6, 2))": "5 keys and 6 values",
    "attention(z(3, 4), z(5, 7), z(5, 2))": "got 4 and 7; project",
    "attention(z(2, 3, 4), z(4, 5, 4), z(4, 5, 2))": "query (2, 3, 4) and key (4, 5, 4) and value",
    "attention(*qkv, score=lambda q, k: k @ q.mT)": "score must return … (..., 3, 5), got (2, 5",
    "attention(*[z(4, 2, 3)] * 3, score=lambda q, k: z(5, 2, 2))": (
        "score(query, key) (5, 2, 2) and value (4, 2, 3)"
    ),
    "attention(*qkv, score=cosine_score, scale=2.0)": (
        "scale = 2.0 is that of …lambda q, k: scale * score"
    ),
    **{
        f"attention(*qkv, mask=yes{shape})": (
            f"mask of shape {shape} does not broadcast to scores of shape (2, 3, 5); "
            "for per-sequence lengths…padding_mask(lengths, 5) … (batch, 1, 5)"
        )
        for shape in [(2, 5), (5, 3), (2, 2, 3, 5), (0, 5)]
    },
    **{
        f"{function}({given})": said
        for function in ("attention", "tiled_attention")
        for given, said in [
            ("z(4, 3, 2), *[z(3, 5, 2)] * 2, enable_gqa=True", "query heads = 4 … heads = 3"),
            ("z(2, 3, 2), z(2, 5, 2), z(1, 5, 2), enable_gqa=True", "key has 2 heads and value 1"),
            ("z(4, 3, 2), *[z(5, 2)] * 2, enable_gqa=True", "key must be (..., heads, n, d), got"),
            ("z(4, 3, 2), *[z(2, 5, 2)] * 2", "or the heads grouped: enable_gqa=True"),
        ]
    },
    **{
        f"{function}(*qkv, {given})": said
        for function in ("attention", "tiled_attention")
        for given, said in [
            ("bias=z(5, 3)", "bias of shape (5, 3) does not broadcast to scores"),
            ("bias=z(1, 1, 1, 3, 5)", "bias of shape (1, 1, 1, 3, 5) does not broadcast"),
            ("scale=inf", "scale must be finite, got inf"),
        ]
    },
    # masks
    "causal_mask(-1, like=z(0))": "num_queries must be at least 0, got -1",
    "sliding_window_mask(2, window=0, like=z(0))": "window must be at least 1, got 0",
    "padding_mask(i([1, 5]), 4)": "lengths[1] = 5 … 0 and num_keys = 4",
    "padding_mask(i([[1, 1, 0], [1, 0, 0]]), 3)": (
        "attention_mask of 0 and 1… becomes a mask by (attention_mask != 0)[:, None]"
    ),
    # heads
    "split_heads(z(2, 100), 3)": "100 … = 3; … 2, 4",
    "split_heads(z(4), 2)": "x must have at least 2 axes … (4,)",
    "merge_heads(z(2, 4))": "x must have at least 3 axes … (2, 4)",
    "many(w_q=z(4, 5))": "5 … num_heads = 2",
    "many(w_q=z(3, 6))": "w_q must be a matrix of 4 rows … (3, 6)",
    "many(w_k=z(5, 8))": "w_q … w_k",
    "many(w_v=z(3, 5))": "5 … num_kv_heads = 2",
    "many(w_o=z(6, 6))": "w_o must be a matrix of 4 rows … (6, 6)",
    "many(query=z(4))": "query must have at least 2 axes … (4,)",
    "many(num_heads=0)": "num_heads must be at least 1, got 0",
    "many(num_kv_heads=3)": "num_heads = 2 is not divisible by num_kv_heads = 3",
    **{
        f"many(mask=yes{shape})": "mask of shape (…padding_mask(lengths, 5)"
        for shape in [(2, 5), (3, 1, 5), (2, 3, 3, 5)]
    },
    # the cache
    "KeyValueCache(window=0)": "window must be at least 1, got 0",
    "KeyValueCache(sinks=4)": "sinks = 4 needs a window",
    "KeyValueCache().reorder([0])": "the cache is empty",
    # positions
    "sinusoidal_positions(-1, 4, like=z(0))": "num_positions must be at least 0, got -1",
    "sinusoidal_positions(2, 4, like=z(0), base=0)": "base must be positive",
    "rotary(z(2, 3))": "rotates pairs of components…has 3, an odd number",
    "rotary(z(4))": "x must have at least 2 axes…x[None, :]",
    "rotary(z(2, 4), start=-1)": "start must be at least 0, got -1",
    "rotary(z(2, 4, 6), layout='halved')": 'layout must be "interleaved" or "halves", got …halved',
    "rotary(z(2, 4, 6), positions=i([0, 1, 2]))": "positions of shape (3,) do not broadcast",
    "rotary(z(2, 4, 6), positions=i([0, 1, 2, 3]), start=2)": "positions or start = 2, not both",
    "rotary(z(2, 4, 6), start=2**53)": "start = 9007199254740992 is too far… up to 2**53",
    "rotary(z(2, 4, 6), positions=i([2**60] * 4))": "exact up to 2**53, got 1152921",
    # tiles, low rank, features
    "tiled_attention(*qkv, block_size=0)": "block_size must be at least 1, got 0",
    "tiled_attention(*qkv, mask=yes(2, 5))": "mask of shape (2, 5) does not broad",
    "tiled_attention(z(3, 4), z(5, 3), z(5, 2))": "vectors of one length, got 4 and 3",
    "tiled_attention(z(3, 4), z(5, 4), z(6, 2))": "each key needs",
    "linear_attention(z(3, 4), z(5, 3), z(5, 2))": "vectors of one length, got 4 and 3",
    "linear_attention(z(3, 4), z(5, 4), z(6, 2))": "each key needs",
    "linear_attention(*[z(3, 4)] * 3, feature_map=lambda x: x[1:])": (
        "it made (2, 4) of the query (3, 4)"
    ),
    "linformer_attention(*[z(6, 4)] * 3, z(2, 5), z(2, 6))": (
        "w_k must have shape (r, m) = (2, 6), got (2, 5)"
    ),
    "linformer_attention(*[z(6, 4)] * 3, z(2, 6), z(3, 6))": (
        "w_v must have shape (r, m) = (2, 6), got (3, 6)"
    ),
    **{
        f"linformer_attention(*[z(6, 4)] * 3, z{shape}, z(2, 6))": f"shape (r, m), got {shape}"
        for shape in [(6,), (1, 2, 6)]
    },
    # hashing
    "lsh_attention(*[z(6, 4)] * 2, num_buckets=3, seed=0)": (
        "even … divides n = 6 … got 3; the nearest: 1, 2"
    ),
    "lsh_attention(*[z(6, 4)] * 2, num_buckets=4, seed=0)": "got 4; the nearest: 2, 6",
    "lsh_attention(*[z(6, 4)] * 2, num_buckets=0, seed=0)": "num_buckets must be at least 1, got 0",
    "lsh_attention(z(6, 4), z(5, 2), num_buckets=1, seed=0)": (
        "each query needs one value, got 6 queries and 5 values"
    ),
    # kernels
    "nadaraya_watson(*[z(1, 1)] * 3, kernel='gauss')": (
        "kernel must be one of gaussian, boxcar, triangular, epanechnikov…'gauss'"
    ),
    "nadaraya_watson(z(1, 2), z(4, 3), z(4, 1))": "got 2 and 3",
    "nadaraya_watson(z(1, 2), z(4, 2), z(5, 1))": "4 keys and 5 values",
    **{
        f"nadaraya_watson(*[z(1, 1)] * 3, kernel={kernel!r}, width={width})": "width must be …, got"
        for kernel, width in [("gaussian", 0), ("boxcar", "nan"), ("triangular", "inf")]
    },
    # looking up
    "KeyValueStore(['a', 'b'], [1.0])": "2 keys and 1 values",
    "KeyValueStore(['b', 'a', 'a'], [1, 2, 3])": "keys must differ, got 'a' more than once",
    "KeyValueStore(['a'], z(1, 2, 3))": "(m,) or vectors (m, d_v), got … (1, 2, 3)",
    "ask(temperature=0)": "temperature must be …, got 0",
    "ask(['a', 'b'], encode=lambda texts: z(3, 2))": "each of 2 strings, shape (2, d), got (3, 2)",
    "ask(encode=lambda texts: np.eye(len(texts)))": "got 1 and 2",
    # names
    "misspell('', rng=rng)": "name is empty",
    "misspell('u', rng=rng, kinds=['doubled', 'left out'])": "doubled, left out fits 'u'",
    "misspell('garcia', rng=rng, kinds=['vowels'])": "'vowels'; there are consonant, vowel,",
    "NameEncoder.load()(['Иванов'])": "'и' in it",
    "NameEncoder.load()(['a' * 65])": "65 letters, and at most 64",
    "NameEncoder({})": "weights has no '",
}
TYPE_ERRORS = {
    # weights
    "softmax(z(2, 3, 4), axis=None)": "axis must be an integer, got None",
    "masked_softmax(z(2, 3, 4), axis=1.0)": "axis must be an integer, got float",
    "masked_softmax(z(1, 2), z(1, 2))": (
        "mask must be boolean (True = may attend), got …float64; …additive one as mask == 0"
    ),
    "masked_softmax(z(1, 2), i([[1, 0]]))": "mask must be boolean …True = may attend…int64",
    # scores
    "scaled_dot_product_score(z(1, 2), z(1, 2), scale=True)": "scale must be a number, got bool",
    # attention
    "attention(*qkv, score=lambda q, k: (q @ k.mT).tolist())": "score",
    "attention(*qkv, causal=1)": "causal must be … got int",
    "attention(z(2, 2), xp.ones((2, 2), dtype=xp.complex64), z(2, 2))": (
        "key must hold real numbers, got …complex64; give key.real or abs(key)"
    ),
    **{
        f"attention(np.ones((2, 2)), {bad}, np.ones((2, 2)))": f"key must {said}"
        for bad, said in [
            ("((1.0, 2.0),)", "be a NumPy array or a PyTorch tensor, got tuple; …asarray"),
            ("None", "be a NumPy array or a PyTorch tensor, got NoneType; …asarray"),
            ("np.array([['a', 'b']])", "hold real numbers, got …<U1"),
            ("np.array([[None, 1.0]])", "hold …, got …object; give key.astype(float)"),
            ("np.asmatrix(np.ones((2, 2)))", "be … got matrix"),
            ("np.ma.array([[1.0]], mask=[[True]])", "be … got MaskedArray; pass x.data… mask="),
        ]
    },
    **{
        f"{function}(*[np.ones((2, 2))] * 3, {given})": said
        for function in ("attention", "tiled_attention")
        for given, said in [
            ("bias=[[0.0]]", "bias must be a NumPy array or a PyTorch tensor, got list"),
            ("bias=np.ones((2, 2), bool)", "added to the scores; give a boolean as mask"),
            ("bias=np.ones((2, 2), complex)", "bias must hold real numbers"),
            ("scale='1'", "scale must be a number, got str"),
            ("enable_gqa=1", "enable_gqa must be True or False, got int"),
        ]
    },
    # masks
    "causal_mask(2.0, like=z(0))": "num_queries must be an integer, got float",
    "sliding_window_mask(2, window=1, like=[0.0])": "like must be … got list",
    "sliding_window_mask(2, window=1.5)": "window must be an integer, got float",
    "sliding_window_mask(3, window=1, causal=0)": "causal must be True or False, got int",
    "padding_mask(xp.asarray([1.0, 2.0]), 4)": "lengths must be integers, got …float",
    "padding_mask(i([1]), 3, heads=1)": "heads must be True or False",
    # heads, the cache
    "split_heads(z(2, 4), 2.0)": "num_heads must be an integer, got float",
    "many(num_kv_heads=1.0)": "num_kv_heads must be an integer, got float",
    "many(causal=1)": "causal must be True or False, got int",
    "merge_heads([[1.0]])": "x must be a NumPy array or a PyTorch tensor, got list",
    "KeyValueCache(window=2.0)": "window must be an integer, got float",
    "KeyValueCache().append([[1.0]], [[1.0]])": "key must be a NumPy array or a …got list",
    # positions
    "sinusoidal_positions(2.0, 4, like=z(0))": "num_positions must be an integer",
    "rotary([[1.0, 2.0]])": "x must be a NumPy array or a PyTorch tensor, got list",
    "rotary(z(2, 4, 6), positions=z(4))": "positions must be integers, got …float64",
    # tiles, features, hashing
    "tiled_attention(*qkv, causal=1)": "causal must be True or False, got int",
    "tiled_attention(*qkv, mask=z(3, 5))": "mask must be boolean",
    "linear_attention(*qkv, feature_map=3)": "feature_map must be a function of an array, got 3",
    "linear_attention(*qkv, feature_map=lambda x: x.tolist())": (
        "feature_map(query) must be a NumPy array"
    ),
    "lsh_attention(*[z(6, 4)] * 2, num_buckets=2.0, seed=0)": "num_buckets must be an integer, got",
    # kernels
    "nadaraya_watson(*[z(1, 1)] * 3, kernel=abs)": "kernel must be a string, got builtin_function",
    # looking up
    "KeyValueStore('ab', [1, 2])": "keys … got one string; write [key]",
    "KeyValueStore({'a', 'b'}, [1.0, 2.0])": "keys must be …set",
    **{
        f"KeyValueStore(['a'], {values})": f"values must be …{said}"
        for values, said in [
            *(("['x']", "'x'"), ("{'a': 1}", "dict"), ("np.ma.array([1], mask=[1])", "MaskedArray"))
        ]
    },
    "KeyValueStore(['a', 'b'], [[1, 2], [3]])": "values … vectors of one length",
    "ask(temperature='1')": "temperature must be a number, got str",
    "ask(['Alice', 3])": "queries must be strings, got int",
    "ask(b'Alice')": "queries must be ",
    "ask(encode=lambda texts: [[1.0] for _ in texts])": "encode(texts) must be … got list",
    "TrigramEncoder('abc')": "texts must be … got one string; write [text]",
    "TrigramEncoder(['abc'])([1])": "texts must be … got int: 1",
    # names
    "misspell('garcia', rng=rng, kinds='vowel')": "kinds must be a list of strings",
    "misspell('garcia', rng=0)": "write np.random.default_rng(0)",
    "NameEncoder.load()('garcia')": "one string; write [text]",
}
ROWS = [(call, ValueError, words) for call, words in VALUE_ERRORS.items()]
ROWS += [(call, TypeError, words) for call, words in TYPE_ERRORS.items()]


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("call, error, words", ROWS, ids=[call for call, _, _ in ROWS])
def test_it_is_turned_away_in_words(xp, call, error, words):
    names = {name: getattr(d2lmini, name) for name in d2lmini.__all__}
    names |= {"xp": xp, "np": np, "inf": np.inf, "nan": np.nan, "rng": np.random.default_rng(0)}
    names["z"] = lambda *shape: xp.zeros(shape, dtype=xp.float64)
    names["yes"] = lambda *shape: xp.ones(shape, dtype=xp.bool)
    names["i"] = lambda numbers: xp.asarray(numbers, dtype=xp.int64)
    store, encode = (
        d2lmini.KeyValueStore(["a", "b"], [1.0, 2.0]),
        d2lmini.TrigramEncoder(["a", "b"]),
    )
    names["ask"] = lambda query="a", **options: store.attend(query, **{"encode": encode, **options})
    names["qkv"] = [names["z"](2, *shape) for shape in ((3, 4), (5, 4), (5, 2))]
    sizes = {"query": (2, 3, 4), "key": (2, 5, 5), "value": (2, 5, 3)}  # of several heads
    sizes |= {"w_q": (4, 6), "w_k": (5, 6), "w_v": (3, 4), "w_o": (4, 6)}
    right = {name: names["z"](*size) for name, size in sizes.items()} | {"num_heads": 2}
    names["many"] = lambda **given: d2lmini.multi_head_attention(**{**right, **given})
    with pytest.raises(error, match=in_words(words)):
        eval(call, names)
