"""Checks and geometry that convolutions of all types share."""

from __future__ import annotations

from delegraph import Rejection
from delegraph.arithmetic import Window, convolution_windows
from delegraph.errors import OperatorError
from delegraph_numba_cpu.lowering.registry import Call

ONE = Window(1, 1, 1, 1, 1, 0)
"""Window of an axis of a single pixel."""

ONE_PIXEL = ONE, ONE
"""Windows of matrix rows, of which each counts as an image of one pixel."""


def check_images(call: Call) -> Rejection | None:
    """Return a rejection unless input 0 is an image that fits the weights.

    Unknown shapes are accepted.
    """
    x, weight = call.input(0), call.input(1)
    if len(weight.shape) != 4 or len(x.shape) not in (0, 4):
        return Rejection("shape", actual=f"{x.shape}, {weight.shape}", expected="[N, H, W, C]")
    if not x.shape:
        return None  # the shape depends on values; windows_of() checks it later
    channels, last = x.shape[3], weight.shape[3]
    if call.name == "CONV_2D" and (
        not last or channels % last or weight.shape[0] % max(channels // last, 1)
    ):
        actual = f"{last} of {channels} channels for {weight.shape[0]} outputs"
        return Rejection("groups", actual=actual, expected="groups of equal size")
    if call.name == "DEPTHWISE_CONV_2D" and (not channels or last % channels):
        return Rejection("shape", actual=weight.shape, expected="outputs of each channel")
    return None


def groups_of(call: Call) -> int:
    """Return the number of channel groups of a CONV_2D; 1 for unknown or wrong shapes."""
    x, weight = call.input(0), call.input(1)
    if len(x.shape) != 4 or len(weight.shape) != 4 or not weight.shape[3]:
        return 1
    return x.shape[3] // weight.shape[3]


def check_one_group(call: Call) -> Rejection | None:
    """Return a rejection unless the convolution has one group of channels."""
    groups = groups_of(call)
    return None if groups == 1 else Rejection("groups", actual=groups, expected=1)


def has_groups(call: Call) -> bool:
    """Whether the node *call* is a CONV_2D with several groups of channels."""
    return call.name == "CONV_2D" and groups_of(call) > 1


def is_pointwise(windows: tuple[Window, Window]) -> bool:
    """Whether each output pixel reads one input pixel, and each input pixel is read once.

    *windows* are those along the height and along the width.
    """
    return all(window.is_pointwise for window in windows)


def windows_of(call: Call) -> tuple[Window, Window]:
    """Return the windows of a convolution along height and width.

    Raises:
        OperatorError: the shapes, which are known only now, do not pass :func:`check_images`.
    """
    found = check_images(call)
    if found is not None:
        raise OperatorError(str(found))
    return convolution_windows(call.options, call.input(0).shape, call.input(1).shape[1:3])
