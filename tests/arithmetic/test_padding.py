"""Window geometry against windows that are counted one by one."""

from dataclasses import replace
from itertools import product

import pytest

from delegraph.arithmetic.padding import convolution_windows, pool_windows, window
from delegraph.errors import OperatorError
from delegraph.schema.enums import Padding
from delegraph.schema.options import Conv2DOptions, Pool2DOptions

SIZES = list(product(range(1, 9), range(1, 5), range(1, 4), range(1, 4)))


@pytest.mark.parametrize("padding", Padding)
def test_sizes_and_borders(padding):
    for size, kernel, stride, dilation in SIZES:
        found = window(padding, size, kernel, stride, dilation)
        span = (kernel - 1) * dilation + 1
        if padding == Padding.VALID:
            starts = [s for s in range(0, size, stride) if s + span <= size]
            assert (found.output, found.before, found.after) == (len(starts), 0, 0)
        else:
            assert found.output == len(range(0, size, stride))
            total = found.before + found.after
            assert total == max((found.output - 1) * stride + span - size, 0)


def test_same_padding_puts_the_odd_zero_after():
    found = window(Padding.SAME, 4, 4, 1)
    assert (found.before, found.after, found.padded) == (1, 2, 7)


def test_outputs_whose_tap_is_inside():
    for size, kernel, stride, dilation in SIZES:
        found = window(Padding.SAME, size, kernel, stride, dilation)
        for tap in range(kernel):
            places = [o * stride + tap * dilation - found.before for o in range(found.output)]
            inside = [o for o, place in enumerate(places) if 0 <= place < size]
            outputs, inputs = found.overlap(tap)
            assert list(range(found.output))[outputs] == inside
            assert list(range(size))[inputs] == [places[o] for o in inside]


@pytest.mark.parametrize("padding", Padding)
def test_taps_are_those_inside_for_some_window(padding):
    for size, kernel, stride, dilation in product(range(1, 7), range(1, 20), (1, 2, 5), (1, 3)):
        found = window(padding, size, kernel, stride, dilation)
        used = [t for t in range(kernel) if found.overlap(t)[0] != slice(0)]
        assert set(used) <= set(found.taps)
        assert len(found.taps) <= size + (found.output - 1) * stride if found.output else not used


def test_a_huge_window_has_few_taps():
    assert len(window(Padding.SAME, 8, 1 << 30, 1).taps) <= 16


def test_only_a_window_of_one_at_each_place_is_pointwise():
    assert window(Padding.SAME, 5, 1, 1, 3).is_pointwise
    assert not window(Padding.SAME, 5, 1, 2).is_pointwise
    assert not window(Padding.VALID, 5, 5, 1).is_pointwise
    assert not replace(window(Padding.VALID, 5, 1, 1), input=3).is_pointwise  # zeros after it


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "match"),
    [(3, 0, 1, "stride is 0"), (3, 1, -1, "dilation is -1"), (0, 1, 1, "window size is 0")],
)
def test_sizes_below_one_are_refused(kernel, stride, dilation, match):
    with pytest.raises(OperatorError, match=match):
        window(Padding.SAME, 5, kernel, stride, dilation)


STRIDES = {"padding": Padding.VALID, "stride_w": 2, "stride_h": 2}


def test_a_convolution_refuses_windows_two_strides_too_large():
    options = Conv2DOptions(**STRIDES)
    down, across = convolution_windows(options, (1, 9, 4, 1), (3, 7))
    assert (down.output, across.output) == (4, 0)
    with pytest.raises(OperatorError, match="windows of 7 are too large for 3 positions"):
        convolution_windows(options, (1, 9, 3, 1), (3, 7))


def test_a_pool_has_no_rows_where_windows_are_much_too_wide():
    options = Pool2DOptions(**STRIDES)
    heights = [pool_windows(options, (1, 9, w, 1), (3, 7))[0].output for w in (4, 3)]
    assert heights == [4, 0]
