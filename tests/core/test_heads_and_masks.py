"""Masks and heads meet: grouped heads, padding with heads, windows to both sides; and in words."""

import numpy as np
import oracles
import pytest
from comparing import assert_close, each_way, output_of, random

from d2lmini import attention, causal_mask, padding_mask, sliding_window_mask


@each_way
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("causal", [False, True])
def test_grouped_heads(xp, attend, groups, causal):
    query, key = random(xp, 0, 2, 6, 2, 4), random(xp, 1, 2, groups, 5, 4)
    value = random(xp, 2, 2, groups, 5, 3)
    output = output_of(attend(query, key, value, causal=causal, enable_gqa=True))
    for head in range(6):
        own = head // (6 // groups)
        given = query[:, head], key[:, own], value[:, own]
        expected, _ = oracles.attention(*given, is_causal=causal)
        assert_close(output[:, head], expected, scale=4)


# As many heads as items


@each_way
@pytest.mark.parametrize("n", [1, 4])
def test_a_mask_that_may_be_for_items_or_heads_is_refused(xp, attend, n):
    """Else padding of item 2 would get weight in silence, as in PyTorch's own kernel."""
    x, lengths = random(xp, 0, 2, 2, 4, 3), xp.asarray([2, 4])
    padding = padding_mask(lengths, 4)
    query = x[:, :, -n:]
    for mask in (padding, padding & causal_mask(n, 4, like=x)):
        with pytest.raises(ValueError, match=r"write mask\[:, None\] for items, mask\[None\] for"):
            attend(query, x, x, mask=mask)
        for own in (mask[:, None], mask[None]):
            expected, _ = oracles.attention(query, x, x, np.array(own.tolist()))
            assert_close(output_of(attend(query, x, x, mask=own)), expected, scale=4)
    with_heads = padding_mask(lengths, 4, heads=True)
    assert tuple(with_heads.shape) == (2, 1, 1, 4)
    assert with_heads.tolist() == padding[:, None].tolist()


def test_where_it_can_mean_one_thing_only_it_is_taken(xp):
    x = random(xp, 0, 3, 2, 4, 3)
    per_head = random(xp, 1, 2, 4, 4) > 0
    expected, _ = oracles.attention(x, x, x, np.array(per_head.tolist()))
    assert_close(attention(x, x, x, mask=per_head).output, expected, scale=4)
    with pytest.raises(ValueError, match=r"each item of the batch, insert .* heads: mask\[:, None"):
        attention(x, x, x, mask=padding_mask(xp.asarray([1, 2, 3]), 4))
    one = random(xp, 0, 1, 1, 4, 3)
    attention(one, one, one, mask=padding_mask(xp.asarray([3]), 4))


# Windows


@pytest.mark.parametrize("n, m", [(5, 5), (2, 6), (6, 2), (0, 3)])
@pytest.mark.parametrize("window, sinks", [(1, 0), (2, 1), (1, 3), (9, 0)])
def test_a_window_to_both_sides(xp, n, m, window, sinks):
    mask = sliding_window_mask(n, m, window=window, sinks=sinks, causal=False, like=xp.zeros(0))
    expected = oracles.mask_of(lambda i, j: abs(i + m - n - j) < window or j < sinks, n, m)
    assert mask.tolist() == expected.tolist()
