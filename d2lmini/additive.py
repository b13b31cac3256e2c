"""Attention with a learned additive score, the one that came first (chapter 3)."""

from typing import TYPE_CHECKING

from d2lmini._checks import (
    check_attention_mask,
    check_rows,
    dropout_rate,
    module_input,
    whole_number,
)
from d2lmini._torch import Tensor, functional, nn, xp
from d2lmini.attention import Attention, _attention
from d2lmini.scores import _additive_score

__all__ = ["AdditiveAttention"]


class AdditiveAttention(nn.Module):
    r"""Compare queries and keys of different length with a small learned network.

    .. math:: a(q, k) = w_v^\top \tanh(W_q^\top q + W_k^\top k)

    Parameters
    ----------
    query_dim, key_dim : int
        d_q and d_k.
    hidden_dim : int
        d_h, the width of the network.
    dropout : float
        Share of the weights set to 0 while training.

    Raises
    ------
    TypeError, ValueError
        If a size is not a positive integer, or `dropout` is not between 0 and 1.

    References
    ----------
    Bahdanau, Cho and Bengio, "Neural machine translation by jointly learning to align and
    translate", 2015.

    Examples
    --------
    >>> import torch
    >>> attend = AdditiveAttention(query_dim=3, key_dim=2, hidden_dim=8)
    >>> query, key, value = torch.zeros(1, 4, 3), torch.zeros(1, 5, 2), torch.ones(1, 5, 6)
    >>> output, weights = attend(query, key, value)
    >>> tuple(output.shape), tuple(weights.shape)
    ((1, 4, 6), (1, 4, 5))
    """

    def __init__(
        self, query_dim: int, key_dim: int, hidden_dim: int, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        hidden_dim = whole_number("hidden_dim", hidden_dim, at_least=1)
        self.w_q = nn.Linear(
            whole_number("query_dim", query_dim, at_least=1), hidden_dim, bias=False
        )
        self.w_k = nn.Linear(whole_number("key_dim", key_dim, at_least=1), hidden_dim, bias=False)
        self.w_v = nn.Linear(hidden_dim, 1, bias=False)
        self.dropout = dropout_rate(dropout)

    def extra_repr(self) -> str:
        """Name the setting that the three projections do not show."""
        return f"dropout={self.dropout}"

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None
    ) -> Attention[Tensor]:
        """Mix the values.

        Parameters
        ----------
        query : tensor, shape (..., n, query_dim)
        key : tensor, shape (..., m, key_dim)
        value : tensor, shape (..., m, d_v)
        mask : boolean tensor that broadcasts to (..., n, m), optional
            True = may attend; (batch, 1, m) from `padding_mask` fits.

        Returns
        -------
        Attention
            ``output`` (..., n, d_v) and ``weights`` (..., n, m), the weights before dropout.

        Raises
        ------
        TypeError
            If an input is not a tensor in the dtype of the weights, or `mask` is not boolean.
        ValueError
            If shapes do not fit together.
        """
        query = module_input("query", query, self.w_q.weight, self.w_q.in_features)
        key = module_input("key", key, self.w_k.weight, self.w_k.in_features)
        value = module_input("value", value, self.w_v.weight)
        check_rows(query, key, value)
        check_attention_mask(mask, query, key)
        w_q, w_k, w_v = self.w_q.weight.mT, self.w_k.weight.mT, self.w_v.weight[0]
        output, weights = _attention(
            xp, query, key, value, mask, score=lambda q, k: _additive_score(xp, q, k, w_q, w_k, w_v)
        )
        if self.training and self.dropout > 0:
            output = functional.dropout(weights, self.dropout) @ value
        return Attention(output, weights)

    if TYPE_CHECKING:  # nn.Module says of a call that it takes and returns anything

        def __call__(  # noqa: D102
            self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None
        ) -> Attention[Tensor]: ...
