"""Learned queries, keys and values, and one head of self-attention over them (chapter 4)."""

from typing import TYPE_CHECKING, NamedTuple

from d2lmini._checks import check_attention_mask, check_flag, module_input, whole_number
from d2lmini._torch import Tensor, nn, xp
from d2lmini.attention import Attention, _attention

__all__ = ["QKV", "QKVProjection", "SelfAttention"]


class QKV(NamedTuple):
    """Three views of one sequence: query (..., n, d_k), key (..., n, d_k), value (..., n, d_v)."""

    query: Tensor
    key: Tensor
    value: Tensor


class QKVProjection(nn.Module):
    r"""Turn each token's vector into a query, a key and a value.

    .. math:: Q = X W_Q, \qquad K = X W_K, \qquad V = X W_V

    Parameters
    ----------
    d_model : int
        Length of the vectors that come in.
    d_k : int, optional
        Length of queries and keys; d_model unless given.
    d_v : int, optional
        Length of values; d_k unless given.
    bias : bool
        Add a learned vector to each of the three.

    Attributes
    ----------
    w_q, w_k, w_v : torch.nn.Linear
        PyTorch stores the transpose: ``w_q.weight`` is W_Qᵀ, of shape (d_k, d_model).

    Raises
    ------
    TypeError, ValueError
        If a size is not a positive integer.

    References
    ----------
    Vaswani et al., "Attention is all you need", 2017.

    Examples
    --------
    >>> import torch
    >>> query, key, value = QKVProjection(8, 4, 5)(torch.zeros(2, 3, 8))
    >>> tuple(query.shape), tuple(key.shape), tuple(value.shape)
    ((2, 3, 4), (2, 3, 4), (2, 3, 5))
    """

    def __init__(
        self, d_model: int, d_k: int | None = None, d_v: int | None = None, *, bias: bool = False
    ) -> None:
        super().__init__()
        check_flag("bias", bias)
        d_model = whole_number("d_model", d_model, at_least=1)
        d_k = d_model if d_k is None else whole_number("d_k", d_k, at_least=1)
        d_v = d_k if d_v is None else whole_number("d_v", d_v, at_least=1)
        self.w_q = nn.Linear(d_model, d_k, bias=bias)
        self.w_k = nn.Linear(d_model, d_k, bias=bias)
        self.w_v = nn.Linear(d_model, d_v, bias=bias)

    def forward(self, x: Tensor) -> QKV:
        """Project `x`, shape (..., n, d_model).

        Raises
        ------
        TypeError
            If `x` is not a tensor of real numbers in the dtype of the weights.
        ValueError
            If its vectors are not of length d_model.
        """
        x = module_input("x", x, self.w_q.weight, self.w_q.in_features)
        return QKV(self.w_q(x), self.w_k(x), self.w_v(x))  # 3 × (..., n, d_model) @ (d_model, d)

    if TYPE_CHECKING:  # nn.Module says of a call that it takes and returns anything

        def __call__(self, x: Tensor) -> QKV: ...  # noqa: D102


class SelfAttention(nn.Module):
    r"""One head of self-attention: a sequence attends to itself through learned projections.

    .. math:: \operatorname{softmax}\!\left(\frac{X W_Q W_K^\top X^\top}{\sqrt{d_k}}\right) X W_V

    Parameters
    ----------
    d_model, d_k, d_v, bias
        As in `QKVProjection`, whose parameters are the only ones: there is no output projection.

    Attributes
    ----------
    project : QKVProjection

    Raises
    ------
    TypeError, ValueError
        If a size is not a positive integer.

    Examples
    --------
    >>> import torch
    >>> output, weights = SelfAttention(8, 4, 5)(torch.zeros(2, 3, 8), causal=True)
    >>> tuple(output.shape), weights[0].tolist()[:2]
    ((2, 3, 5), [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    """

    def __init__(
        self, d_model: int, d_k: int | None = None, d_v: int | None = None, *, bias: bool = False
    ) -> None:
        super().__init__()
        self.project = QKVProjection(d_model, d_k, d_v, bias=bias)

    def forward(
        self, x: Tensor, *, mask: Tensor | None = None, causal: bool = False
    ) -> Attention[Tensor]:
        """Attend within `x`, shape (..., n, d_model); see `attention` for `mask` and `causal`.

        Returns
        -------
        Attention
            ``output`` (..., n, d_v) and ``weights`` (..., n, n).

        Raises
        ------
        TypeError
            If `x` is not a tensor of real numbers in the dtype of the weights, or `mask` is not
            boolean.
        ValueError
            If shapes do not fit together.
        """
        query, key, value = self.project(x)  # (..., n, d_k), (..., n, d_k), (..., n, d_v)
        check_attention_mask(mask, query, key)
        check_flag("causal", causal)
        return _attention(xp, query, key, value, mask, causal)

    if TYPE_CHECKING:  # nn.Module says of a call that it takes and returns anything

        def __call__(  # noqa: D102
            self, x: Tensor, *, mask: Tensor | None = None, causal: bool = False
        ) -> Attention[Tensor]: ...
