"""One block of a Transformer: attention, then a small network, each added to what went in."""

from d2lmini._checks import module_input, whole_number
from d2lmini._torch import Tensor, functional, nn
from d2lmini.attention import Attention
from d2lmini.multihead import MultiHeadAttention

__all__ = ["TransformerBlock"]


class TransformerBlock(nn.Module):
    r"""Collect by attention, then work on each token alone.

    .. math::
        H &= X + \operatorname{MultiHead}(\operatorname{norm}(X)) \\
        Y &= H + W_2 \max(0, W_1 \operatorname{norm}(H))

    As ``torch.nn.TransformerEncoderLayer`` with ``norm_first=True`` and no dropout.

    Parameters
    ----------
    d_model : int
        Length of the vectors.
    num_heads : int
    d_hidden : int, optional
        Width of the small network; 4·d_model unless given.

    Raises
    ------
    TypeError, ValueError
        If a size is not a positive integer, or heads do not divide d_model.

    References
    ----------
    Vaswani et al., "Attention is all you need", 2017; Xiong et al., "On layer normalization in
    the Transformer architecture", 2020, for the order of normalisation and addition.

    Examples
    --------
    >>> import torch
    >>> output, weights = TransformerBlock(8, 2)(torch.zeros(1, 3, 8), causal=True)
    >>> tuple(output.shape), tuple(weights.shape)
    ((1, 3, 8), (1, 2, 3, 3))
    """

    def __init__(self, d_model: int, num_heads: int, d_hidden: int | None = None) -> None:
        super().__init__()
        d_model = whole_number("d_model", d_model, at_least=1)
        d_hidden = 4 * d_model if d_hidden is None else d_hidden
        self.norm_1 = nn.LayerNorm(d_model)
        self.attend = MultiHeadAttention(d_model, num_heads, bias=True)
        self.norm_2 = nn.LayerNorm(d_model)
        self.widen = nn.Linear(d_model, whole_number("d_hidden", d_hidden, at_least=1))
        self.narrow = nn.Linear(d_hidden, d_model)

    def forward(
        self, x: Tensor, *, mask: Tensor | None = None, causal: bool = False
    ) -> Attention[Tensor]:
        """Return what the tokens have become, and where they have looked.

        Parameters
        ----------
        x : tensor, shape (..., n, d_model)
        mask : boolean tensor, optional
            True = may attend.
        causal : bool

        Returns
        -------
        Attention
            ``output`` (..., n, d_model) and ``weights`` (..., heads, n, n).

        Raises
        ------
        TypeError, ValueError
            If kinds or shapes do not fit.
        """
        x = module_input("x", x, self.norm_1.weight, self.norm_1.normalized_shape[0])
        normed = self.norm_1(x)
        collected = self.attend(normed, mask=mask, causal=causal, need_weights=True)
        x = x + collected.output  # (..., n, d_model)
        hidden = functional.relu(self.widen(self.norm_2(x)))  # (..., n, d_hidden)
        return Attention(x + self.narrow(hidden), collected.weights)
