"""How `record_attention` sees what a model asks of PyTorch, and which module asks."""

from __future__ import annotations

import inspect
import math
import sys
import threading
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from torch.nn.modules import module as hooks
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from d2lmini._torch import Tensor, functional, nn, torch
from d2lmini.record import AttentionRecord, RecordedAttention

FRAMEWORK = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)
DOT_PRODUCT = (
    functional.scaled_dot_product_attention,
    torch.ops.aten.scaled_dot_product_attention,
    torch.ops.aten.scaled_dot_product_attention.default,
)
LAYER = inspect.signature(functional.multi_head_attention_forward)


class AsWritten:
    """While a thread records, what torch.compile has compiled runs as it was written."""

    lock, records = threading.Lock(), 0
    stance: Any = None

    @classmethod
    def begin(cls) -> None:
        """Record in one thread more."""
        with cls.lock:
            cls.records += 1
            if cls.stance is None and "torch._dynamo" in sys.modules:  # or nothing is compiled
                cls.stance = torch.compiler.set_stance("force_eager")

    @classmethod
    def end(cls) -> None:
        """Record in one thread less; the last puts back what was set."""
        with cls.lock:
            cls.records -= 1
            if cls.stance is not None and not cls.records:
                cls.stance.__exit__(None, None, None)
                cls.stance = None


class Watch(TorchFunctionMode):
    """Records the calls of attention in a block, and takes heads out of them."""

    def __init__(
        self,
        model: nn.Module | None,
        without: dict[str, list[int]],
        keep: Sequence[str] | None,
    ) -> None:
        super().__init__()
        self.anywhere = model is None
        self.names = {} if model is None else {m: name for name, m in model.named_modules()}
        self.without, self.keep = without, keep
        self.running: list[tuple[nn.Module, int]] = []  # and how many calls there were before it
        self.aside: nn.Module | None = None  # runs out of our sight, and once more after it
        self.again = False  # the run after it
        self.calls = 0
        self.seen: set[str] = set()  # modules that called attention
        self.silent: dict[str, str] = {}  # modules that are called attention, and did not; and why
        self.record = AttentionRecord([], [])

    def __enter__(self) -> Watch:
        self.thread = threading.get_ident()
        AsWritten.begin()
        self.handles = [
            hooks.register_module_forward_pre_hook(self.before),
            hooks.register_module_forward_hook(self.after, with_kwargs=True, always_call=True),
        ]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in self.handles:
            handle.remove()
            hooks._global_forward_hooks_with_kwargs.pop(handle.id, None)  # which PyTorch forgets
        AsWritten.end()
        if self.aside:  # interrupted: what is taken off next is to be this
            self.show()
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        silent = [
            name
            for name in self.silent
            if not any(_within(name, seen) or _within(seen, name) for seen in self.seen)
            and not any(_within(inner, name) for inner in self.silent if inner != name)
        ]
        if silent:
            more = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
            self.note(
                f"{silent[0] or 'the model'}{more} called no attention that can be seen, but "
                f"multiplied by hand or called a kernel directly{self.silent[silent[0]]}"
            )

    def show(self) -> None:
        """Be asked again, after a module that ran out of sight."""
        self.aside = None
        super().__enter__()  # type: ignore[no-untyped-call]

    def note(self, words: str) -> None:
        """Say once what could not be seen."""
        if words not in self.record.unseen:
            self.record.unseen.append(words)

    def before(self, module: nn.Module, args: Any) -> None:
        """Note that a module runs; let one of the framework's take its fast path, if it would."""
        if torch.compiler.is_compiling() or threading.get_ident() != self.thread or self.aside:
            return
        if isinstance(module, torch.jit.ScriptModule):
            self.note("what torch.jit has compiled: record the module that it was made from")
        if self.anywhere and not self.running:
            self.names.update({inner: name for name, inner in module.named_modules()})
        if module in self.names:
            self.running.append((module, self.calls))
            if not self.again and self.may_be_fast(module):
                self.aside = module
                super().__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def after(self, module: nn.Module, args: Any, *more: Any) -> None:
        """Note that a module has run, or failed: then PyTorch passes no keyword arguments."""
        *kwargs, output = more
        if torch.compiler.is_compiling() or threading.get_ident() != self.thread:
            return
        if self.aside is module:
            self.show()
            if output is not None:
                self.repeat(module, args, *kwargs)
        if not self.aside and self.running and self.running[-1][0] is module:
            _, before = self.running.pop()
            if self.calls == before and "attention" in type(module).__name__.lower():
                self.silent[self.names[module]] = _way_out(module)

    def may_be_fast(self, module: nn.Module) -> bool:
        """Say whether a module of the framework may take a path on which nothing can be seen."""
        return (
            isinstance(module, FRAMEWORK)
            and torch.backends.mha.get_fastpath_enabled()
            and _get_current_function_mode_stack() == [self]  # type: ignore[no-untyped-call]
            and not any(_within(name, self.names[module]) for name in self.without)
            and not (torch.is_grad_enabled() and any(p.requires_grad for p in module.parameters()))
            and not any(m.training or m._forward_hooks for m in module.modules())
        )

    def repeat(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        """Run a module once more, on the path that can be seen, with its padding as a mask."""
        given = inspect.signature(module.forward).bind(*args, **kwargs).arguments
        first = next(iter(given.values()))
        if first.is_nested:
            lengths = torch.tensor([len(part) for part in first.unbind()], device=first.device)
            padded = first.to_padded_tensor(0.0)
            given = {k: padded if v is first else v for k, v in given.items()}
            layer = isinstance(module, nn.MultiheadAttention)
            given["key_padding_mask" if layer else "src_key_padding_mask"] = (
                torch.arange(padded.shape[1], device=first.device) >= lengths[:, None]
            )
        self.again = True
        try:
            with torch.no_grad():
                module.forward(**given)
        finally:
            self.again = False

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """See one function that PyTorch is asked for."""
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():
            self.note("what was compiled in this block: call torch.compile before it")
            return func(*args, **kwargs)
        if not self.running and not self.anywhere:
            return func(*args, **kwargs)  # not of the model
        asks = self.running[-1][0] if self.running else None
        name = self.names[asks] if asks is not None else ""  # a module may have a length of 0
        if func in DOT_PRODUCT:
            output = func(*args, **kwargs)
            heads = _unpacked_heads(asks, output)
            self.add(name, lambda: _unpack(weights_of(*args, **kwargs), heads))
            return self.without_heads(name, output, heads)
        if func is functional.multi_head_attention_forward:
            given = LAYER.bind(*args, **kwargs).arguments
            output = func(**self.without_columns(name, given))
            self.add(name, lambda: weights_of_layer(given))
            return output
        if "attention" in (called := getattr(func, "__name__", "")):
            self.note(f"{called} was called directly")
        return func(*args, **kwargs)

    def add(self, name: str, weights: Callable[[], Tensor]) -> None:
        """Add a call to the record, if its module is one of those to keep."""
        self.calls += 1
        self.seen.add(name)
        if self.keep is None or any(fnmatchcase(name, pattern) for pattern in self.keep):
            with torch.no_grad(), torch._C.DisableTorchFunction():
                self.record._calls.append(RecordedAttention(name, weights().detach()))

    def without_heads(self, name: str, output: Tensor, heads: int | None) -> Tensor:
        """Return the output of the heads, (..., heads, n, d), with 0 for those taken out."""
        if name not in self.without:
            return output
        if output.is_nested:
            raise ValueError(f"without: {name!r} got nested tensors; pad them to take heads out")
        each = _unpack(output, heads)
        return each.index_fill(-3, self.heads(name, each.shape[-3], each), 0.0).reshape(
            output.shape
        )

    def without_columns(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a layer, with 0 for what its last projection takes of a head."""
        if name not in self.without:
            return given
        count, weight = given["num_heads"], given["out_proj_weight"]
        columns = weight.unflatten(-1, (count, -1))  # (embed_dim, heads, d)
        columns = columns.index_fill(-2, self.heads(name, count, weight), 0.0)
        return {**given, "out_proj_weight": columns.flatten(-2)}

    def heads(self, name: str, count: int, like: Tensor) -> Tensor:
        """Return the heads that are taken out of a module."""
        for head in self.without[name]:
            if head >= count:
                raise ValueError(
                    f"without: {name!r} has no head {head}: there are {count}, from 0 to "
                    f"{count - 1}"
                )
        return torch.tensor(self.without[name], dtype=torch.long, device=like.device)


def _way_out(module: nn.Module) -> str:
    """Say how a module of transformers is made to call what can be seen."""
    kernel = getattr(getattr(module, "config", None), "_attn_implementation", None)
    if kernel in (None, "sdpa"):
        return ""
    return f' (attn_implementation="{kernel}"): first call model.set_attn_implementation("sdpa")'


def _unpacked_heads(module: nn.Module | None, output: Tensor) -> int | None:
    """Return how many heads there are, if they are laid out as the queries of their group.

    So transformers gives the one query of a step to the kernel: (batch, groups, heads / groups, d).
    """
    shared = getattr(module, "num_key_value_groups", 1)
    heads = getattr(getattr(module, "config", None), "num_attention_heads", None)
    packed = (
        shared > 1
        and not output.is_nested
        and tuple(output.shape[1:3])
        == (
            heads and heads // shared,
            shared,
        )
    )
    return heads if packed else None


def _unpack(each: Tensor, heads: int | None) -> Tensor:
    """Return (batch, heads, 1, ...) of what is packed in groups."""
    return each if heads is None else each.reshape(each.shape[0], heads, 1, each.shape[-1])


def weights_of(
    query: Tensor,  # (..., heads, n, d)
    key: Tensor,  # (..., groups, m, d)
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return the weights of ``scaled_dot_product_attention``; its arguments have their names."""
    if query.is_nested:
        pairs = zip(query.unbind(), key.unbind(), strict=True)
        each = [weights_of(q, k, k, None, 0.0, is_causal, scale, enable_gqa) for q, k in pairs]
        n, m = (max(one.shape[axis] for one in each) for axis in (-2, -1))
        pads = [(0, m - one.shape[-1], 0, n - one.shape[-2]) for one in each]
        return torch.stack([functional.pad(*pair) for pair in zip(each, pads, strict=True)])
    if torch.is_autocast_enabled(query.device.type):
        kind = torch.get_autocast_dtype(query.device.type)
        query, key = query.to(kind), key.to(kind)
    wide = torch.promote_types(query.dtype, torch.float32)
    with torch.autocast(query.device.type, enabled=False):
        if enable_gqa:
            key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        scores = query.to(wide) @ key.to(wide).mT * scale  # (..., heads, n, m)
        if is_causal:  # here the first query sees the first key only, however many there are
            attn_mask = scores.new_ones(scores.shape[-2:], dtype=torch.bool).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        nothing = scores.isneginf().all(-1, keepdim=True)
        return scores.softmax(-1).masked_fill(nothing, 0.0)


def weights_of_layer(given: dict[str, Any]) -> Tensor:
    """Return the weights of ``multi_head_attention_forward``, asked for once more."""
    given = {**given, "need_weights": True, "average_attn_weights": False, "training": False}
    layer: Callable[..., Any] = functional.multi_head_attention_forward
    weights: Tensor = layer(**given)[1]
    if weights.isnan().any():  # 0 for a query that sees no key: where zeros give NaN as well
        blank = {name: torch.zeros_like(given[name]) for name in ("query", "key", "value")}
        nothing = layer(**{**given, **blank})[1].isnan()
        weights = weights.masked_fill(nothing, 0.0)
    weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
    return weights if weights.ndim == 4 else weights[None]


def _within(inner: str, outer: str) -> bool:
    """Say whether a module lies in another, or is it, by their names."""
    return inner == outer or not outer or inner.startswith(outer + ".")
