"""A function under test: how it is called, and its conventions, asked for or found out."""

import contextlib
import inspect
import itertools
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from d2lmini.testing.invariants import (
    Array,
    Score,
    Sizes,
    defined,
    lengths,
    scaled_dot_product,
    some,
)
from d2lmini.testing.layers import is_multihead, of_multihead

__all__ = ["NAMES", "Subject"]

# What the arguments are called elsewhere.
PADDING = ("key_padding_mask", "padding_mask")
ADDED = ("attn_bias", "attention_bias", "bias")  # masks, where masks are said to be numbers
BLOCKS = ("block_size", "chunk_size", "block", "chunk")  # parts by their size, not their number
NAMES = {
    "mask": ("mask", "attn_mask", "attention_mask", *PADDING),
    "causal": ("causal", "is_causal"),
    "heads": ("heads", "num_heads", "n_heads", "n_head", "nheads"),
    "weights": ("need_weights", "return_weights", "return_attention", "output_attentions"),
    "window": ("window", "window_size", "sliding_window"),
    "parts": ("parts", "num_parts", "num_chunks", "processes", "world_size", *BLOCKS),
    "padding": PADDING,  # beside another mask
}
ALWAYS_WRITTEN = {"weights", "window", "parts", "padding"}  # never guessed behind **options
TRIPLES = [  # some say "values, keys, query"
    *itertools.product(("query", "queries"), ("key", "keys"), ("value", "values")),
    (*"qkv",),
    (*"QKV",),
]
SHAPES = {  # of masks: what broadcasts to the scores comes first
    "": "of any shape that broadcasts",
    "full": "in the full shape of the scores",
    "one for all heads": "of shape (batch, 1, n, m)",
    "rows": "of shape (n, m)",
}
LAYOUTS = {
    "batch heads n d": "(batch, heads, n, d)",
    "batch n d": "(batch, n, d)",
    "batch n heads d": "(batch, n, heads, d)",
    "n d": "(n, d)",
}
MEANINGS = {
    "attend": "True = may attend",
    "hidden": "True = hidden",
    "additive": "added to the scores",
}


KINDS = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}
_REMEMBERED: dict[tuple[Any, ...], Array] = {}


class BadAnswer(ValueError):
    """What a function returned is no output of attention."""


def stays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as one that ends itself only, and not the program."""

    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except SystemExit as error:
            raise BadAnswer(f"it ended the program, with sys.exit({error.code!r})") from error

    return call


def in_words(error: Exception) -> str:
    """Return what went wrong, in a line: an answer that is none speaks for itself."""
    words = " ".join(str(error).split())[:300]
    return words if isinstance(error, BadAnswer) else f"{type(error).__name__}: {words}"


class Subject:
    """A function, called as ``f(query, key, value, mask=…, causal=…, heads=…)``.

    The arrays are NumPy's, of shape (batch, n, heads · d); what the function itself wants is made
    of them, and its output comes back as they are.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        names: Mapping[str, str | None] | None = None,
        arrays: str | None = None,
        layout: str | None = None,
        mask: str | None = None,
        corner: str = "bottom-right",
        no_keys: str = "zero",
        shared_heads: str = "neighbours",
        always_causal: bool | None = None,
        width: int | None = None,
        heads: int | None = None,
        score: Score = scaled_dot_product,
    ) -> None:
        self.fixed: dict[str, int] = {}
        if is_multihead(function):
            heads, width = function.num_heads, function.embed_dim  # type: ignore[attr-defined]
            try:
                function, mask, arrays = of_multihead(function), mask or "hidden", "torch"
            except ValueError as error:
                raise BadAnswer(str(error)) from error
            layout = "batch n d"
        if width or heads:
            heads = heads or 1
            part = (width or 4 * heads) // heads
            self.fixed = {"heads": heads, "width": part, "value_width": part}
        self.function, self.score = function, score
        self.corner, self.no_keys, self.shared_heads = corner, no_keys, shared_heads
        written = _written(function)
        self.triple = _triple(written)
        self.names = _names(function, written)
        if mask == "additive" and not self.names["mask"]:
            self.names["mask"] = next((name for name in ADDED if name in written), None)
        self._rename(names or {}, written)
        if not names:
            self._forget_guesses(written)
        self.unasked = self._unasked(written)
        known = {*self.names.values(), *(self.triple or [*written][:3])}
        self.unknown = [
            name for name, p in written.items() if p.default is not p.empty and name not in known
        ]
        if mask and not self.names["mask"]:
            raise ValueError(
                f'mask="{mask}" is declared, but no argument is known to be a mask; '
                f'say which: names={{"mask": "…"}}'
            )
        self.mask_shape = ""
        self.meaning = mask or ("hidden" if self.names["mask"] in PADDING else "attend")
        self.masks: str | None = "any" if self.names["mask"] else None
        if self.names["mask"] in PADDING:
            self.masks, self.names["padding"] = "padding", None
        self.padding = self.names["padding"] is not None
        self.padding_meaning = "attend" if mask == "attend" else "hidden"
        default = getattr(written.get(self.names["window"] or ""), "default", None)
        self.two_sides = isinstance(default, tuple)  # of a window: how far back, and how far ahead
        self.causal: tuple[bool, ...] = (False, True) if self.names["causal"] else (False,)
        if always_causal:
            self.causal = (True,)
        self.arrays, self.layout = arrays or "numpy", layout or "batch n d"
        self.rectangles = self.wide = self.returns_weights = True
        self.takes_half = self.one_rule = self.refuses_strides = False
        self.dtype: Any = np.float64
        self.precision: Any = np.float64  # the best that it takes
        self.exactness = 0.0  # of what is computed inside, if that is less than the dtype's
        self.calls: list[tuple[str, Any, Any, int]] = []
        self.lay: Callable[[Array], Array] = np.ascontiguousarray
        self._find_out(arrays, layout, mask, always_causal)

    # Calling

    def definition(
        self,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None = None,
        causal: bool = False,
        heads: int = 1,
        padding: Array | None = None,
    ) -> Array:
        """Return the output of the loops. They are slow, and most functions get the same inputs."""
        if padding is not None:
            mask = padding if mask is None else mask & padding
        inputs = [x for x in (query, key, value, mask) if x is not None]
        case = (causal, heads, self.corner, self.score, *((x.shape, x.tobytes()) for x in inputs))
        if case not in _REMEMBERED:
            _REMEMBERED[case], _ = defined(
                query, key, value, mask, causal, heads, corner=self.corner, score=self.score
            )
        return _REMEMBERED[case]

    def array(self, x: Array) -> Array:
        """Return an array of numbers in the precision that is tried."""
        return x.astype(self.dtype)

    def __call__(
        self,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None = None,
        causal: bool = False,
        heads: int = 1,
        **further: Any,
    ) -> tuple[Array, Array | None]:
        """Call the function; return its output (batch, n, heads · d_v), and its weights or None.

        `further` may say whether weights are asked for, a window, a number of parts, and a mask of
        padding for the argument that some have for it.
        """
        if self.layout == "n d":
            items = range(len(query))
            said = [{kind: x[b] if kind == "padding" else x for kind, x in further.items()}
                    for b in items]  # fmt: skip
            masks = [mask if mask is None or mask.ndim < 3 else mask[b % len(mask)] for b in items]
            each = [
                self._one(query[b], key[b], value[b], masks[b], causal, heads, said[b])
                for b in items
            ]
            weights = [w for _, w in each if w is not None]
            return np.stack([o for o, _ in each]), np.stack(weights) if weights else None
        return self._one(query, key, value, mask, causal, heads, further)

    def _one(
        self,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None,
        causal: bool,
        heads: int,
        further: Mapping[str, Any],
    ) -> tuple[Array, Array | None]:
        self.head_count = heads
        further, padding = {**further}, further.get("padding")
        shared = further.pop("key_heads", heads)
        each = ((query, heads), (key, shared), (value, shared))
        arguments = [self._native(self.lay(self._laid(x, h))) for x, h in each]
        options = {**self.unasked}
        if mask is not None:
            said = self._mask(mask, query, key)
            options[str(self.names["mask"])] = self._native(said)
        if causal and self.names["causal"]:
            options[str(self.names["causal"])] = True
        if self.names["heads"]:
            options[str(self.names["heads"])] = heads
        if self.names["weights"]:
            options[str(self.names["weights"])] = True
        for kind, said in further.items():
            options[str(self.names[kind])] = self._said(kind, said, query, key)
        given = dict(zip(("query", "key", "value"), arguments, strict=True))
        if self.triple:
            options |= dict(zip(self.triple, arguments, strict=True))
            arguments = []
        for kind, rule in ("mask", mask), ("padding", padding):
            if rule is not None:
                given[kind] = options[str(self.names[kind])]
        self.watch(given)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = stays(self.function)(*arguments, **options)
        output, weights = _taken_apart(result)
        joined = self._joined(output)
        wanted = (*query.shape[:-1], value.shape[-1] // shared * heads)
        if joined.shape != wanted:
            raise BadAnswer(f"the output has shape {output.shape}; {self._shape(wanted, heads)}")
        return joined, weights

    def _shape(self, wanted: tuple[int, ...], heads: int) -> str:
        return f"expected {self._laid(np.empty(wanted), heads).shape}"

    def _laid(self, x: Array, heads: int) -> Array:
        """Bring (batch, n, heads · d) into the function's layout."""
        if "heads" not in self.layout:
            return x
        apart = x.reshape(*x.shape[:2], heads, -1)
        return apart.swapaxes(1, 2) if self.layout == "batch heads n d" else apart

    def _joined(self, output: Array) -> Array:
        """Bring an output back into (batch, n, heads · d_v)."""
        if output.ndim != len(self.layout.split()):
            return output
        if self.layout == "batch heads n d":
            output = output.swapaxes(1, 2)
        return output.reshape(*output.shape[:2], -1) if "heads" in self.layout else output

    def _mask(self, mask: Array, query: Array, key: Array) -> Array:
        """Say a mask (True = may attend) in the function's way."""
        if self.masks == "padding":
            mask = self._of_padding(mask, query, key)
        elif "heads" in self.layout and mask.ndim > 2:
            mask = mask[:, None]
        if self.mask_shape in ("full", "one for all heads"):
            mask = np.broadcast_to(mask, self._full(query, key)).copy()
        if mask.dtype != bool:  # numbers, for a mask that is added
            return mask.astype(query.dtype)
        if self.meaning == "attend":
            return mask.copy()
        return (
            ~mask if self.meaning == "hidden" else np.where(mask, 0.0, -np.inf).astype(query.dtype)
        )

    def _of_padding(self, mask: Array, query: Array, key: Array) -> Array:
        """Return the (batch, m) of a mask of padding."""
        return np.broadcast_to(mask[..., 0, :], (*query.shape[:-2], key.shape[-2])).copy()

    def _said(self, kind: str, said: Any, query: Array, key: Array) -> Any:
        """Say what a function is asked for besides in its way."""
        if kind == "padding":
            mask = self._of_padding(said, query, key)
            return self._native(mask if self.padding_meaning == "attend" else ~mask)
        if kind == "parts" and self.names["parts"] in BLOCKS:
            return math.ceil(key.shape[-2] / said)
        return (said - 1, said - 1) if kind == "window" and self.two_sides else said

    def _full(self, query: Array, key: Array) -> tuple[int, ...]:
        """Return the shape of the scores, or of one table for all heads."""
        table = (query.shape[-2], key.shape[-2])
        if self.layout == "n d":
            return table
        if self.mask_shape == "full" and "heads" not in self.layout:
            return (len(query), *table)
        return (len(query), self.head_count if self.mask_shape == "full" else 1, *table)

    def _native(self, x: Array) -> Any:
        if self.arrays == "torch":
            import torch

            return torch.from_numpy(x if x.flags.writeable else x.copy())
        if self.arrays == "jax":
            import jax.numpy as jnp  # type: ignore[import-not-found, unused-ignore]

            return jnp.asarray(x)
        return x

    @contextlib.contextmanager
    def one_thread(self) -> Iterator[None]:
        """Let PyTorch use one thread, since several only wait for each other at these sizes."""
        if self.arrays != "torch":
            yield
            return
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)

    @contextlib.contextmanager
    def strided(self) -> Iterator[None]:
        """Give arrays whose axes lie in memory in another order."""
        before, self.lay = self.lay, np.asfortranarray
        try:
            yield
        finally:
            self.lay = before

    def watch(self, given: Mapping[str, Any]) -> None:
        """Note what a call is given, so that it can be told afterwards what was written to."""
        self.calls = [(name, x, _numpy(x).copy(), _writes(x)) for name, x in given.items()]

    def written(self) -> list[str]:
        """Return which arguments of the last call were written to, even if they were put back."""
        return [
            name
            for name, x, was, writes in self.calls
            if _writes(x) > writes or not np.array_equal(_numpy(x), was, equal_nan=True)
        ]

    # Finding out

    def sizes(self, s: Sizes) -> Sizes:
        """Return the sizes nearest to these that the function takes."""
        s = s if self.rectangles else s._replace(keys=s.queries)
        s = s if self.wide else s._replace(value_width=s.width)
        if self.fixed:
            return s._replace(**self.fixed)
        return s if "heads" in self.layout or self.names["heads"] else s._replace(heads=1)

    def _plain(self, causal: bool = False) -> bool:
        """Call it as simply as possible, and tell whether the output is the definition's."""
        s = self.sizes(Sizes())
        q, k, v = some(self, s)
        output, weights = self(q, k, v, causal=causal, heads=s.heads)
        self.returns_weights = weights is not None
        causal = causal or self.causal == (True,)
        right = self.definition(q, k, v, causal=causal, heads=s.heads)
        return np.allclose(output, right, rtol=1e-2, atol=1e-2)

    def _masked(self) -> tuple[bool, bool]:
        """Tell whether some meaning of the mask gives the definition's output, or any at all."""
        s, before = self.sizes(Sizes()), self.meaning
        q, k, v = some(self, s)
        mask = np.tile(np.arange(s.keys) % 3 > 0, (s.batch, 1, 1))
        causal = self.causal[0]
        right = self.definition(q, k, v, mask, causal, s.heads)
        fits = answers = False
        for self.mask_shape, self.meaning in itertools.product(SHAPES, MEANINGS):
            with contextlib.suppress(Exception):
                found, _ = self(q, k, v, mask, causal, s.heads)
                answers, fits = True, np.allclose(found, right, 1e-2, 1e-2)
            if fits:
                break
        self.meaning, self.mask_shape = before, ""
        return fits, answers

    def _padded(self) -> bool:
        """Tell the same of the argument for padding, if there is another for masks."""
        s, before = self.sizes(Sizes()), self.padding_meaning
        q, k, v = some(self, s)
        rule: dict[str, Any] = {"causal": self.causal[0], "heads": s.heads, "padding": lengths(s)}
        right, fits = self.definition(q, k, v, **rule), False
        for self.padding_meaning in ("attend", "hidden"):
            with contextlib.suppress(Exception):
                fits = fits or np.allclose(self(q, k, v, **rule)[0], right, 1e-2, 1e-2)
        self.padding_meaning = before
        return fits

    def _find_out(
        self, arrays: str | None, layout: str | None, mask: str | None, always: bool | None
    ) -> None:
        """Find the arrays, the layout and the sizes that it takes; what fits best is kept."""
        tried: list[tuple[int, bool, bool, bool, int, tuple[Any, ...]]] = []
        failed: dict[str, Exception] = {}
        number = _written(self.function).get(self.names["heads"] or "")
        makes_heads = bool(self.fixed) or (number is not None and number.default is number.empty)
        for kind in [arrays] if arrays else _kinds(self.function):
            for lies in [layout] if layout else _layouts(self.names, makes_heads):
                for rectangles, wide in (True, True), (False, True), (True, False), (False, False):
                    self.arrays, self.layout = kind, lies
                    self.rectangles, self.wide = rectangles, wide
                    try:
                        score = int(self._plain())
                        if self.causal == (False, True):
                            score += self._plain(causal=True)
                        masked, answers = self._masked() if self.masks else (False, True)
                        score += masked
                        score += self.padding and self._padded()
                    except Exception as error:
                        failed.setdefault(kind, error)
                        continue
                    fit = (score, answers, rectangles, wide, -len(tried))
                    tried.append((*fit, (kind, lies, rectangles, wide)))
                    break
                if tried and tried[-1][0] == len(self.causal) + bool(self.masks) + self.padding:
                    break
                if tried and makes_heads and lies == "n d":  # heads that lie apart need no number
                    break
            if tried:
                break
        if not tried and self.precision is np.float64:  # it may take single precision only
            self.dtype = self.precision = np.float32
            return self._find_out(arrays, layout, mask, always)
        if not tried:
            bad = {kind: e for kind, e in failed.items() if isinstance(e, BadAnswer)}
            said: dict[str, list[str]] = {}
            for kind, e in (bad or failed).items():
                said.setdefault(in_words(e), []).append(KINDS[kind])
            each = [f"with {' and '.join(kinds)}: {words}" for words, kinds in said.items()]
            raise BadAnswer("; ".join(each))
        self.arrays, self.layout, self.rectangles, self.wide = max(tried)[-1]
        try:
            self._find_causal(always)
            self._find_mask(mask)
            self._find_precision()
        except Exception as error:  # what it keeps of a call is in the way of the next
            raise BadAnswer(f"a call that worked fails later on: {in_words(error)}") from error

    def _rename(self, names: Mapping[str, str | None], written: Mapping[str, Any]) -> None:
        """Take what somebody says of the names, if there are such."""
        takes_any = not written or any(p.kind is p.VAR_KEYWORD for p in written.values())
        for kind, name in names.items():
            if kind not in NAMES:
                raise ValueError(f"names: there is no {kind!r}, only {', '.join(NAMES)}")
            if name is not None and name not in written and not takes_any:
                raise ValueError(f"names: the function has no argument {name!r}")
        self.names |= names

    def _unasked(self, written: Mapping[str, Any]) -> dict[str, Any]:
        """Return what must be said to an argument when nothing is asked of it."""
        plain = {"mask": None, "causal": False, "window": None, "parts": 1, "padding": None}
        return {
            name: value
            for kind, value in plain.items()
            if (p := written.get(name := self.names[kind] or ""))
            and (p.default is p.empty or (kind == "causal" and p.default is not False))
        }

    def _forget_guesses(self, written: Mapping[str, Any]) -> None:
        """Forget a name that nobody has written down, if ``**options`` does not read it."""
        hides_one = np.tile([False, True, True], (3, 1))
        values = {"heads": 2, "causal": True, "mask": hides_one}
        for kind, name in self.names.items():
            if written and name and name not in written and not self._reads(name, values[kind]):
                self.names[kind] = None

    def _reads(self, name: str, value: Any) -> bool:
        """Tell whether a name is taken, and not only because every name is."""
        shapes = (1, 3, 2), (1, 1, 3, 2)  # so long that one may look too far
        for make, shape in itertools.product((np.asarray, _as_tensor), shapes):

            def call(make: Any = make, shape: Any = shape, **options: Any) -> Array:
                x = np.arange(6.0).reshape(shape)
                inputs = (make(x.copy()) for _ in range(3))
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    return _taken_apart(stays(self.function)(*inputs, **options))[0]

            try:
                said = call(**{name: make(value) if isinstance(value, np.ndarray) else value})
            except Exception as error:
                if isinstance(error, TypeError) and f"argument {name!r}" in str(error):
                    return False
                continue  # said of something else
            with contextlib.suppress(Exception):
                if np.array_equal(said, call()):
                    return not np.array_equal(said, call(no_such_argument=value))
        return True

    def _find_causal(self, always: bool | None) -> None:
        """Find out whether a function without such an argument is causal all the same."""
        right = self._plain()
        if always is None and not right and not self.names["causal"]:
            self.causal = (True,)
            if not self._plain():
                self.causal = (False,)

    def _find_mask(self, said: str | None) -> None:
        """Find out whether it takes boolean masks at all; their meaning is not guessed."""
        if not self.masks:
            return
        s = self.sizes(Sizes())
        rows = np.ones((s.queries, s.keys), dtype=bool)
        each = np.ones((s.batch, 1, s.keys), dtype=bool)
        meanings = (self.meaning,) if said else (self.meaning, "additive")
        for shape, meaning in itertools.product(SHAPES, meanings):
            self.meaning, self.mask_shape = meaning, shape
            with contextlib.suppress(Exception):
                for everything in [rows] if shape == "rows" else [each, rows]:
                    self(*some(self, s), mask=everything, causal=self.causal[0], heads=s.heads)
                break
        else:
            self.meaning, self.mask_shape = said or "attend", ""
        if self.mask_shape == "rows" and self.masks == "any":
            self.masks = "rows"
        if True in self.causal and self.names["causal"]:
            self.one_rule = self._refuses_both()

    def _refuses_both(self) -> bool:
        """Tell whether it takes a mask and a causal rule, but says that it does not take both."""
        s = self.sizes(Sizes(keys=4))
        mask = np.ones(
            (s.batch, 1, s.keys) if self.masks == "padding" else (s.queries, s.keys), bool
        )
        try:
            self(*some(self, s), mask=mask, causal=True, heads=s.heads)
        except Exception as error:
            words = str(error)
            return all(
                name and name in words for name in (self.names["mask"], self.names["causal"])
            )
        return False

    def _find_precision(self) -> None:
        s = self.sizes(Sizes())
        q, k, v = some(self, s)
        causal = self.causal[0]
        output, _ = self(q, k, v, causal=causal, heads=s.heads)
        right = self.definition(q, k, v, causal=causal, heads=s.heads)
        self.returned = output.dtype
        error = np.abs(output - right).max()
        self.exactness = 1e-4 if 1e-9 < error < 1e-5 else 0.0
        self.dtype = np.float16
        try:
            self(*some(self, s), causal=causal, heads=s.heads)
            self.takes_half = True
        except Exception:
            self.takes_half = False
        self.dtype = self.precision

    def conventions(self) -> dict[str, str]:
        """Say what was asked for or found out, in words."""
        said = {
            "arrays": KINDS[self.arrays],
            "layout": LAYOUTS[self.layout],
            "mask": "none" if not self.masks else f"{self.names['mask']}, {MEANINGS[self.meaning]}",
            "causal": {
                (False,): "no such argument",
                (True,): "always",
                (False, True): f"{self.names['causal']}, from the {self.corner} corner",
            }[self.causal],
            "weights": "returned" if self.returns_weights else "not returned",
        }
        if self.masks == "padding":
            said["mask"] += ", of padding only"
        elif self.mask_shape:
            said["mask"] += f", {SHAPES[self.mask_shape]}"
        if self.unknown:
            said["not understood"] = ", ".join(self.unknown)
            if masks := [name for name in self.unknown if "mask" in name or "bias" in name]:
                said["not understood"] += (
                    f' (say what it is: names={{"mask": "{masks[0]}"}}, for example)'
                )
        if self.padding:
            said["padding"] = f"{self.names['padding']}, {MEANINGS[self.padding_meaning]}"
        if self.one_rule:
            said["both rules"] = "refused, with an error that says so"
        if self.refuses_strides:
            said["axes swapped in memory"] = "refused, with an error that says so"
        if not self.rectangles:
            said["lengths"] = "as many keys as queries"
        if not self.wide:
            said["widths"] = "values as wide as keys"
        if self.precision is not np.float64:
            said["precision"] = "single only"
        elif self.exactness:
            said["precision"] = "computed in single precision"
        elif self.returned != self.precision:
            said["precision"] = f"{self.returned} returned for float64"
        if not self.takes_half:
            said["half precision"] = "not taken"
        if self.shared_heads != "neighbours":
            said["shared heads"] = "in turns"
        if self.no_keys != "zero":
            said["a query without keys"] = "gets anything"
        return said


def _written(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters as they are written; of a module, those of its ``forward``."""
    forward = getattr(function, "forward", None) if hasattr(function, "parameters") else None
    try:
        return inspect.signature(forward or function).parameters
    except (TypeError, ValueError):  # a builtin
        return {}


def _triple(written: Mapping[str, inspect.Parameter]) -> tuple[str, str, str] | None:
    """Return what query, key and value are called, if their place would mislead."""
    for names in TRIPLES:
        if all(name in written for name in names):
            first = [*written][:3]
            if tuple(first) != names or written[names[0]].kind is inspect.Parameter.KEYWORD_ONLY:
                return names
    return None


def _names(
    function: Callable[..., Any], written: Mapping[str, inspect.Parameter]
) -> dict[str, str | None]:
    """Read from the signature what the other arguments are called."""
    if written:
        found = [
            name for name, p in written.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
    else:  # a builtin says it in its first lines
        found = re.findall(r"(\w+)=", (function.__doc__ or "")[:400])
    named = {kind: next((n for n in names if n in found), None) for kind, names in NAMES.items()}
    if any(p.kind is p.VAR_KEYWORD for p in written.values()):  # it may read others
        for kind in NAMES.keys() - ALWAYS_WRITTEN:
            named[kind] = named[kind] or NAMES[kind][0]
    return named


def _kinds(function: Callable[..., Any]) -> list[str]:
    """Return the kinds of arrays to try: NumPy first, unless it comes from elsewhere."""
    import sys

    home = (getattr(function, "__module__", "") or type(function).__module__).partition(".")[0]
    if hasattr(function, "parameters") or home == "torch":
        return ["torch"]
    return ["numpy", *(kind for kind in ("torch", "jax") if kind in sys.modules)]


def _layouts(names: Mapping[str, str | None], makes_heads: bool) -> list[str]:
    if names["heads"] or makes_heads:
        return ["batch n d", "n d", "batch heads n d", "batch n heads d"]
    return ["batch heads n d", "batch n d", "batch n heads d", "n d"]


def _as_tensor(x: Array) -> Any:
    import sys

    return sys.modules["torch"].from_numpy(x) if "torch" in sys.modules else x


def _writes(x: Any) -> int:
    """Return how often an array was written to, where it counts that."""
    return getattr(x, "_version", 0)


def _numpy(x: Any) -> Array:
    detach = getattr(x, "detach", None)
    return np.asarray(detach().cpu().numpy() if detach else x)


def _taken_apart(result: Any) -> tuple[Array, Array | None]:
    """Return the output and the weights (or None) of whatever came back."""
    weights = None
    if isinstance(result, tuple | list):
        if not result:
            raise BadAnswer("it returned nothing but an empty tuple")
        weights = result[1] if len(result) > 1 else None
        result = result[0]
    if result is None:
        raise BadAnswer("it returned None: is a return missing?")
    output = _numpy(result)
    if output.dtype.kind not in "fiu":
        what = f"{output.dtype} numbers" if hasattr(result, "dtype") else type(result).__name__
        raise BadAnswer(f"it returned {what}; expected an array of real numbers")
    return output, None if weights is None else _numpy(weights)
