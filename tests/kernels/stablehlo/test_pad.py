"""STABLEHLO_PAD."""

import numpy as np
import pytest

from delegraph.schema.options import StablehloPadOptions
from delegraph.testing import constant, delegraph_outputs, fed
from support.agreement import assert_agrees, model_and_arrays

X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def slow_pad(x, low, high, between, filler):
    """Return *x* padded along one axis after the other, by lists."""
    for axis, (before, after, gap) in enumerate(zip(low, high, between, strict=True)):
        spread = np.insert(x, np.repeat(np.arange(1, x.shape[axis]), gap), filler, axis)
        ends = [(max(before, 0), max(after, 0)) if i == axis else (0, 0) for i in range(x.ndim)]
        padded = np.pad(spread, ends, constant_values=filler)
        length = spread.shape[axis] + before + after
        first = max(-before, 0)
        x = padded.take(np.arange(first, first + max(length, 0)), axis)
    return x


@pytest.mark.parametrize("low", [(0, 0), (2, 1), (-1, 0), (-2, -3)])
@pytest.mark.parametrize("high", [(0, 0), (1, 2), (-1, -2)])
@pytest.mark.parametrize("between", [(0, 0), (1, 2), (2, 0)])
def test_stablehlo_pad_puts_and_crops(low, high, between):
    options = StablehloPadOptions(
        **{
            name: np.array(sizes, np.int64)
            for name, sizes in (
                ("edge_padding_low", low),
                ("edge_padding_high", high),
                ("interior_padding", between),
            )
        }
    )
    inputs = [fed(X), constant(np.float32(0.5))]
    slow = slow_pad(X, low, high, between, 0.5)
    (y,) = assert_agrees("STABLEHLO_PAD", inputs, ["FLOAT32"], options)
    np.testing.assert_array_equal(y, slow if slow.size else np.zeros((0, 0)))


def test_stablehlo_pad_refuses_sizes_of_another_rank():
    options = StablehloPadOptions(
        edge_padding_low=np.zeros(1, np.int64),
        edge_padding_high=np.zeros(1, np.int64),
        interior_padding=np.zeros(1, np.int64),
    )
    inputs = [fed(X), constant(np.float32(0.5))]
    model, arrays = model_and_arrays("STABLEHLO_PAD", inputs, ["FLOAT32"], options)
    with pytest.raises(RuntimeError, match="paddings"):
        delegraph_outputs(model, arrays)
