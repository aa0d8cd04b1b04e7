"""Geometry of sliding windows over an image, by TensorFlow's rules.

Source:
    GetWindowedOutputSizeVerbose, core/framework/kernel_shape_util.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic import Window
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require


@dataclass(frozen=True, slots=True)
class Sliding:
    """Padding, strides and dilations of a node's windows, for each spatial axis.

    Attributes:
        padding: SAME, VALID or EXPLICIT.
        strides: distances between windows.
        dilations: distances between taps (elements of a window).
        explicit: numbers of zeros before and after, for EXPLICIT padding.
    """

    padding: str
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    explicit: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, node: FlexNode, dilations: str = "dilations") -> Sliding:
        """Return the window geometry of *node*; channels are last, the only order on a CPU.

        *dilations* is the name of the attribute with the dilations.

        Raises:
            Unsupported: the axes have another order, or windows move along images or channels.
        """
        rank = rank_of(node)
        data_format = "NDHWC" if rank == 5 else "NHWC"
        node.choice("data_format", (data_format,), data_format)
        padding = node.choice("padding", ("SAME", "VALID", "EXPLICIT"))
        strides = spatial(node, "strides")
        steps = spatial(node, dilations, (1,) * rank)
        edges = node.ints("explicit_paddings", ())
        if padding == "EXPLICIT":
            if len(edges) != 2 * rank or any(edges[:2]) or any(edges[-2:]) or min(edges) < 0:
                raise Unsupported(f"attribute 'explicit_paddings' is {list(edges)}")
            return cls(
                padding, strides, steps, tuple(zip(edges[2:-2:2], edges[3:-2:2], strict=True))
            )
        return cls(padding, strides, steps, ((0, 0),) * (rank - 2))

    def windows(self, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[Window, ...]:
        """Return the geometry of windows over an image of *sizes*, for each spatial axis.

        Raises:
            ValueError: the windows are empty, or far larger than the image.
        """
        axes = zip(sizes, kernel, self.strides, self.dilations, self.explicit, strict=True)
        return tuple(window(self.padding, *axis) for axis in axes)


def rank_of(node: FlexNode) -> int:
    """Return the rank of the images of *node*, an operator with windows."""
    return 5 if "3D" in node.op else 4


def spatial(node: FlexNode, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the spatial part of the attribute *name*, which has a value for each axis.

    Raises:
        Unsupported: the number of values is wrong, a value is below 1, or a value for images or
            channels is not 1.
    """
    values = node.ints(name, default)
    if len(values) != rank_of(node) or values[0] != 1 or values[-1] != 1 or min(values) < 1:
        raise Unsupported(f"attribute {name!r} is {list(values)}, expected 1 at both ends")
    return tuple(values[1:-1])


def window(
    padding: str, size: int, kernel: int, stride: int, dilation: int, edges: tuple[int, int]
) -> Window:
    """Return the geometry of windows along one axis of *size*.

    *padding* is SAME, VALID or EXPLICIT; EXPLICIT adds *edges* zeros before and after.

    >>> window("SAME", 4, 3, 2, 1, (0, 0))
    Window(input=4, kernel=3, stride=2, dilation=1, output=2, before=0)

    Raises:
        ValueError: the kernel is empty, or is too large by two strides or more.
    """
    if kernel < 1:
        raise ValueError(f"a window has {kernel} taps, expected at least one")
    span = (kernel - 1) * dilation + 1
    if padding == "SAME":
        output = -(-size // stride)
        missing = max((output - 1) * stride + span - size, 0)
        return Window(size, kernel, stride, dilation, output, missing // 2)
    room = size + sum(edges) - span + stride
    if room <= -stride:
        raise ValueError(f"windows span {span} positions, expected at most {size + sum(edges)}")
    return Window(size, kernel, stride, dilation, max(room, 0) // stride, edges[0])


def patches(x: NDArray[Any], windows: Sequence[Window]) -> NDArray[Any]:
    """Return every window of *x*, as a view: ``[N, *outputs, *kernels, C]``, padded with zeros."""
    x = surrounded(x, windows)
    steps = x.strides[1:-1]
    shape = (
        len(x),
        *(window.output for window in windows),
        *(window.kernel for window in windows),
        x.shape[-1],
    )
    strides = (
        x.strides[0],
        *(step * window.stride for step, window in zip(steps, windows, strict=True)),
        *(step * window.dilation for step, window in zip(steps, windows, strict=True)),
        x.strides[-1],
    )
    if 0 in shape:
        return np.empty(shape, x.dtype)
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)


def surrounded(x: NDArray[Any], windows: Sequence[Window], fill: complex = 0) -> NDArray[Any]:
    """Return *x*, ``[N, *spatial, C]``, padded with *fill* to the ends of the windows."""
    if not any(window.before or window.after for window in windows):
        return x
    shape = (len(x), *(window.padded for window in windows), x.shape[-1])
    require(shape, x.dtype)
    padded = np.full(shape, fill, x.dtype)
    padded[inside(windows)] = x
    return padded


def inside(windows: Sequence[Window]) -> tuple[slice, ...]:
    """Return the index of the unpadded image in :func:`surrounded`'s result for *windows*."""
    return (
        slice(None),
        *(slice(window.before, window.before + window.input) for window in windows),
    )


def tap_index(windows: Sequence[Window], tap: Sequence[int]) -> tuple[slice, ...]:
    """Return the index of the elements in the padded image that one tap of all windows reads."""
    starts = [at * window.dilation for at, window in zip(tap, windows, strict=True)]
    return (
        slice(None),
        *(
            slice(start, start + (window.output - 1) * window.stride + 1, window.stride)
            if window.output
            else slice(0)
            for start, window in zip(starts, windows, strict=True)
        ),
    )
