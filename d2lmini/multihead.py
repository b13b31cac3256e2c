"""Multi-head attention as a PyTorch module (chapter 5); the functions stand in ``heads.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, overload

from d2lmini._checks import (
    check_bias,
    check_flag,
    check_heads,
    check_rows,
    divided_evenly,
    dropout_rate,
    mask_with_heads,
    module_input,
    scores_shape,
    whole_number,
)
from d2lmini._kernel import fused_attention, kernel_serves
from d2lmini._torch import Tensor, functional, nn, torch, xp
from d2lmini.attention import Attention, _attention
from d2lmini.cache import KeyValueCache
from d2lmini.heads import _merge_heads, _share_heads, _split_heads
from d2lmini.masks import _combined_mask
from d2lmini.scores import _scale_that_fits

__all__ = ["MultiHeadAttention"]


def _attend(
    layer: MultiHeadAttention,
    query: Tensor,  # (batch, n, embed_dim)
    key: Tensor,  # (batch, m, kdim)
    value: Tensor,  # (batch, m, vdim)
    mask: Tensor | None,  # (batch, h, n, m), or what broadcasts to it
    causal: bool,
    need_weights: bool,
    cache: KeyValueCache | None,
    scale: float | None,
    bias: Tensor | None,  # (batch, h, n, m), or what broadcasts to it
    kept: Tensor | None,  # (h, 1, 1): False for a head that is taken out
) -> Attention[Tensor, Tensor | None]:
    q = _split_heads(layer.w_q(query), layer.num_heads)  # (batch, h, n, d)
    k = _split_heads(layer.w_k(key), layer.num_kv_heads)  # (batch, g, m, d)
    v = _split_heads(layer.w_v(value), layer.num_kv_heads)  # (batch, g, m, d)
    if cache is not None:
        k, v = cache.append(k, v)  # from here on m counts the earlier tokens too
        if cache.window is not None:
            n, m, window, sinks = q.shape[-2], k.shape[-2], cache.window, cache.sinks
            mask, causal = _combined_mask(mask, n, m, window=window, sinks=sinks, like=q), True
    k = _share_heads(xp, k, layer.num_heads)  # (batch, h, m, d)
    v = _share_heads(xp, v, layer.num_heads)  # (batch, h, m, d)
    dropout = layer.dropout if layer.training else 0.0
    if not need_weights and kernel_serves(q, k, v, mask, bias):
        heads = fused_attention(q, k, v, mask, causal, scale, bias, dropout)  # (batch, h, n, d)
        heads = heads if kept is None else heads.where(kept, 0.0)
        return Attention(layer.w_o(_merge_heads(heads)), None)  # (batch, n, embed_dim)
    heads, weights = _attention(xp, q, k, v, mask, causal, scale=scale, bias=bias)
    heads = heads if dropout == 0 else functional.dropout(weights, dropout) @ v
    heads = heads if kept is None else heads.where(kept, 0.0)
    output = layer.w_o(_merge_heads(heads))  # (batch, n, embed_dim)
    return Attention(output, weights if need_weights else None)  # (batch, h, n, m)


class MultiHeadAttention(nn.Module):
    r"""Several heads of attention with learned projections, batch first.

    .. math::
        Q_i &= Q W_Q^{(i)} \\
        K_i &= K W_K^{(i)} \\
        V_i &= V W_V^{(i)} \\
        \text{head}_i &= \operatorname{Attention}(Q_i, K_i, V_i) \\
        \text{output} &= [\text{head}_1, \dots, \text{head}_h]\, W_O

    Parameters
    ----------
    embed_dim : int
        Length of the queries and of the output; a multiple of `num_heads`.
    num_heads : int
        h, the number of heads.
    num_kv_heads : int, optional
        A divisor of `num_heads`, which it is unless given. Fewer key-value heads than query heads
        (grouped-query attention; 1: multi-query attention) make the cache smaller.
    kdim, vdim : int, optional
        Length of the keys and values that come in; embed_dim unless given.
    bias : bool
        Add a learned vector after each projection.
    dropout : float
        Share of the weights set to 0, and the rest scaled up, while training.

    Attributes
    ----------
    w_q, w_k, w_v, w_o : torch.nn.Linear
        The four projections; the heads' parts lie side by side. PyTorch stores the transpose:
        ``w_q.weight`` is W_Qᵀ.

    Raises
    ------
    TypeError, ValueError
        If a number is of the wrong kind, not positive, or does not divide.

    References
    ----------
    Vaswani et al., "Attention is all you need", 2017; Shazeer, "Fast transformer decoding:
    one write-head is all you need", 2019; Ainslie et al., "GQA: training generalized multi-query
    transformer models from multi-head checkpoints", 2023.

    Examples
    --------
    >>> import torch
    >>> layer = MultiHeadAttention(embed_dim=8, num_heads=2)
    >>> output, weights = layer(torch.zeros(3, 5, 8), causal=True, need_weights=True)
    >>> tuple(output.shape), tuple(weights.shape)
    ((3, 5, 8), (3, 2, 5, 5))
    >>> layer(torch.zeros(3, 5, 8)).weights is None
    True
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        kdim: int | None = None,
        vdim: int | None = None,
        bias: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_flag("bias", bias)
        embed_dim = whole_number("embed_dim", embed_dim, at_least=1)
        self.num_heads, self.num_kv_heads = check_heads(num_heads, num_kv_heads)
        head_dim = divided_evenly("embed_dim", embed_dim, "num_heads", self.num_heads)
        kdim = embed_dim if kdim is None else whole_number("kdim", kdim, at_least=1)
        vdim = embed_dim if vdim is None else whole_number("vdim", vdim, at_least=1)
        self.w_q = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.w_k = nn.Linear(kdim, self.num_kv_heads * head_dim, bias=bias)
        self.w_v = nn.Linear(vdim, self.num_kv_heads * head_dim, bias=bias)
        self.w_o = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.dropout = dropout_rate(dropout)

    def extra_repr(self) -> str:
        """Name the settings that the four projections do not show."""
        return (
            f"num_heads={self.num_heads}, num_kv_heads={self.num_kv_heads}, dropout={self.dropout}"
        )

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        need_weights: bool = False,
        cache: KeyValueCache | None = None,
        scale: float | None = None,
        bias: Tensor | None = None,
        without: Sequence[int] = (),
    ) -> Attention[Tensor, Tensor | None]:
        """Attend.

        Parameters
        ----------
        query : tensor, shape (batch, n, embed_dim)
            Any number of leading axes, also none.
        key : tensor, shape (batch, m, kdim), optional
            The query unless given: self-attention.
        value : tensor, shape (batch, m, vdim), optional
            The key unless given.
        mask : boolean tensor, optional
            True = may attend. With at most as many axes as `query` it serves all heads: (n, m), or
            (batch, 1, m) from `padding_mask`. With one axis more it is per head:
            (batch, heads, n, m). With a cache, m counts the keys of the cache too.
        causal : bool
            Hide later keys too (see `causal_mask`: the last query sees every key).
        need_weights : bool
            Return the weights. Without them PyTorch's fused kernel is used: the same output, in
            less time and memory (but without second derivatives, and the scores of hidden keys must
            fit the dtype).
        cache : KeyValueCache, optional
            Holds the projected keys and values of earlier calls; those of `key` and `value` are
            added. If it has a window, each query sees the keys within the window, and the sinks;
            no later ones, also without `causal`.
        scale : float, optional
            What the dot products are multiplied by; 1/√d of a head unless given.
        bias : tensor that broadcasts to (batch, heads, n, m), optional
            Added to the scores: (n, m) to those of all heads, (heads, n, m) to those of each, such
            as `alibi_bias`. With a cache, m counts the keys of the cache too.
        without : sequence of int
            Heads to take out, counted from 0: they add nothing to the output. Their weights are
            returned all the same.

        Returns
        -------
        Attention
            ``output`` (batch, n, embed_dim); ``weights`` None, or (batch, heads, n, m): per head,
            before dropout, each row summing to 1 (or 0 for a query with no key).

        Raises
        ------
        TypeError
            If an input is not a tensor in the dtype of the weights, `mask` is not boolean, or
            `cache` is not a KeyValueCache.
        ValueError
            If shapes do not fit together, `scale` does not fit the dtype, there is no head of a
            number in `without`, or the cache belongs to another batch.
        """
        key = query if key is None else key
        value = key if value is None else value
        kept = self._kept(without)
        query, key, value, mask, bias = self._checked(query, key, value, mask, cache, bias)
        check_flag("causal", causal)
        check_flag("need_weights", need_weights)
        scale = None if scale is None else _scale_that_fits(xp, scale, query.dtype)
        return _attend(
            self, query, key, value, mask, causal, need_weights, cache, scale, bias, kept
        )

    if TYPE_CHECKING:
        __call__: _Call

    def _kept(self, without: Sequence[int]) -> Tensor | None:
        """Return which heads are not taken out, (h, 1, 1); None if all stay."""
        heads = [whole_number(f"without[{i}]", h, at_least=0) for i, h in enumerate(without)]
        for i, head in enumerate(heads):
            if head >= self.num_heads:
                raise ValueError(
                    f"without[{i}] = {head} is no head: there are {self.num_heads}, from 0 to "
                    f"{self.num_heads - 1}"
                )
        if not heads:
            return None
        kept = [head not in heads for head in range(self.num_heads)]
        return torch.tensor(kept, device=self.w_o.weight.device)[:, None, None]

    def _checked(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        cache: KeyValueCache | None,
        bias: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
        """Check the inputs; return them in the dtype of the weights, the mask with a head axis."""
        w_q, w_k, w_v = self.w_q, self.w_k, self.w_v
        alike = len({(w.in_features, w.weight.dtype) for w in (w_q, w_k, w_v)}) == 1
        on_itself = key is query and value is query
        query = module_input("query", query, w_q.weight, w_q.in_features)
        if on_itself and alike:
            key = value = query  # to ask once is enough
        else:
            key = module_input("key", key, w_k.weight, w_k.in_features)
            value = module_input("value", value, w_v.weight, w_v.in_features)
            check_rows(query, key, value)
        if not (cache is None or isinstance(cache, KeyValueCache)):
            raise TypeError(f"cache must be a KeyValueCache, got {type(cache).__name__}")
        num_cached = 0 if cache is None else cache.context
        mask = mask_with_heads(mask, query, key, self.num_heads, num_cached)
        if bias is not None:
            *batch, n, m = scores_shape(query, key, self.num_heads)
            check_bias(bias, (*batch, n, num_cached + m))
            bias = module_input("bias", bias, w_q.weight)
        return query, key, value, mask, bias

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> MultiHeadAttention:
        """Copy the weights of PyTorch's own layer; the outputs are then the same.

        Two conventions differ. Here the layout is always (batch, n, embed_dim), whatever the
        `batch_first` of `module`. And here True in a mask means *may attend*: where `module` takes
        ``key_padding_mask`` and ``attn_mask``, True means the opposite there, so pass ``~mask``.

        Parameters
        ----------
        module : torch.nn.MultiheadAttention

        Returns
        -------
        MultiHeadAttention
            With the sizes, biases, dropout, dtype, device and mode (training or not) of `module`.

        Raises
        ------
        TypeError
            If `module` is something else.
        ValueError
            If it was made with ``add_bias_kv`` or ``add_zero_attn``, which add keys that no input
            has.

        Examples
        --------
        >>> import torch
        >>> theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> ours = MultiHeadAttention.from_torch(theirs)
        >>> x = torch.linspace(-1, 1, 48).reshape(2, 3, 8)
        >>> torch.testing.assert_close(ours(x).output, theirs(x, x, x)[0])
        """
        if not isinstance(module, nn.MultiheadAttention):
            raise TypeError(
                f"module must be a torch.nn.MultiheadAttention, got {type(module).__name__}"
            )
        for name, given in (
            ("add_bias_kv", module.bias_k is not None),
            ("add_zero_attn", module.add_zero_attn),
        ):
            if given:
                raise ValueError(
                    f"module was made with {name}=True, which adds a key that no input has; "
                    "that has no counterpart here: make it without"
                )
        with torch.device("meta"):  # draws no random numbers for weights that are replaced
            ours = cls(
                module.embed_dim,
                module.num_heads,
                kdim=module.kdim,
                vdim=module.vdim,
                bias=module.in_proj_bias is not None,
                dropout=module.dropout,
            )
        for linear, weight, bias in _torch_parameters(ours, module):
            linear.weight = _copy(weight)
            if bias is not None:
                linear.bias = _copy(bias)
        return ours.train(module.training)

    def to_torch(self) -> nn.MultiheadAttention:
        """Copy the weights into PyTorch's own layer, with ``batch_first=True``: see `from_torch`.

        Raises
        ------
        ValueError
            If there are fewer key-value heads than heads, which that layer cannot have.

        Examples
        --------
        >>> import torch
        >>> ours, x = MultiHeadAttention(8, 2), torch.linspace(-1, 1, 48).reshape(2, 3, 8)
        >>> torch.testing.assert_close(ours.to_torch()(x, x, x)[0], ours(x).output)
        """
        if self.num_kv_heads != self.num_heads:
            raise ValueError(
                f"PyTorch's layer has no grouped heads, and here {self.num_heads} heads share "
                f"{self.num_kv_heads} key-value heads: repeat the rows of w_k and w_v first"
            )
        with torch.device("meta"):  # draws no random numbers for weights that are replaced
            theirs = nn.MultiheadAttention(
                self.w_q.in_features,
                self.num_heads,
                kdim=self.w_k.in_features,
                vdim=self.w_v.in_features,
                bias=self.w_q.bias is not None,
                dropout=self.dropout,
                batch_first=True,
            )
        inner = (self.w_q, self.w_k, self.w_v)
        if theirs.in_proj_weight is not None:
            theirs.in_proj_weight = _copy(torch.cat([linear.weight for linear in inner]))
        else:  # kdim or vdim differs from embed_dim
            for name, linear in zip("qkv", inner, strict=True):
                setattr(theirs, f"{name}_proj_weight", _copy(linear.weight))
        theirs.out_proj.weight = _copy(self.w_o.weight)
        if self.w_q.bias is not None:
            theirs.in_proj_bias = _copy(torch.cat([linear.bias for linear in inner]))
            theirs.out_proj.bias = _copy(self.w_o.bias)
        return theirs.train(self.training)


def _copy(parameter: Tensor) -> nn.Parameter:
    return nn.Parameter(parameter.detach().clone(), requires_grad=parameter.requires_grad)


def _torch_parameters(
    ours: MultiHeadAttention, module: nn.MultiheadAttention
) -> list[tuple[nn.Linear, Tensor, Tensor | None]]:
    """Pair each of our four projections with the weight and bias in PyTorch's layer."""
    if module.in_proj_weight is not None:
        weights = module.in_proj_weight.chunk(3)
    else:  # kdim or vdim differs from embed_dim
        weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    no_bias = (None, None, None)
    biases = no_bias if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    inner = zip((ours.w_q, ours.w_k, ours.w_v), weights, biases, strict=True)
    return [*inner, (ours.w_o, module.out_proj.weight, module.out_proj.bias)]


if TYPE_CHECKING:

    class _Call(Protocol):
        """What a call returns, for an editor: with ``need_weights=True`` no weights are None."""

        @overload
        def __call__(
            self,
            query: Tensor,
            key: Tensor | None = None,
            value: Tensor | None = None,
            *,
            mask: Tensor | None = None,
            causal: bool = False,
            need_weights: Literal[True],
            cache: KeyValueCache | None = None,
            scale: float | None = None,
            bias: Tensor | None = None,
            without: Sequence[int] = (),
        ) -> Attention[Tensor]: ...
        @overload
        def __call__(
            self,
            query: Tensor,
            key: Tensor | None = None,
            value: Tensor | None = None,
            *,
            mask: Tensor | None = None,
            causal: bool = False,
            need_weights: bool = False,
            cache: KeyValueCache | None = None,
            scale: float | None = None,
            bias: Tensor | None = None,
            without: Sequence[int] = (),
        ) -> Attention[Tensor, Tensor | None]: ...
