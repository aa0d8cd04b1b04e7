"""Geometry of sliding windows: the number of windows, and the zeros around the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass, replace
from delegraph.schema.enums import Padding

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Window:
    """Size, stride and position of the windows along one axis of an input.

    Attributes:
        input: length of the input axis.
        kernel: number of taps (weights) of a window.
        stride: distance between windows.
        dilation: distance between taps.
        output: number of windows.
        before: number of zeros before the first input position.
    """

    input: int
    kernel: int
    stride: int
    dilation: int
    output: int
    before: int

    @property
    def span(self) -> int:
        """Number of input positions from a window's first tap to its last tap, both included."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def after(self) -> int:
        """Number of zeros that windows read after the input; 0 if they end inside the input."""
        if self.output == 0:
            return 0
        reach = (self.output - 1) * self.stride + self.span - self.before
        return max(reach - self.input, 0)

    @property
    def padded(self) -> int:
        """Length of the input together with the zeros on both sides."""
        return self.before + self.input + self.after

    @property
    def is_pointwise(self) -> bool:
        """Whether output position i reads only input position i, and no output reads a zero."""
        return self.kernel == self.stride == 1 and self.before == 0 and self.output == self.input

    @property
    def taps(self) -> range:
        """Taps that read the input in at least one window.

        The taps of huge windows may lie beyond both ends of the input.
        """
        if not self.output:
            return range(0)
        first = -(((self.output - 1) * self.stride - self.before) // self.dilation)
        end = (self.before + self.input - 1) // self.dilation + 1
        return range(max(first, 0), min(end, self.kernel))

    def overlap(self, tap: int) -> tuple[slice, slice]:
        """Return the outputs for which *tap* lies inside the input, and the inputs it reads."""
        offset = tap * self.dilation - self.before
        first = min(max(-(offset // self.stride), 0), self.output)
        end = min((self.input - 1 - offset) // self.stride + 1, self.output)
        if end <= first:
            return slice(0), slice(0)
        start, last = (output * self.stride + offset for output in (first, end - 1))
        return slice(first, end), slice(start, last + 1, self.stride)

    def inputs_of_outputs(self) -> NDArray[np.int64]:
        """Return the number of taps inside the input for each output: ``[output]``."""
        counts = np.zeros(self.output, np.int64)
        for tap in self.taps:
            counts[self.overlap(tap)[0]] += 1
        return counts

    @staticmethod
    def overlaps(
        windows: Sequence[Window],
    ) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]:
        """Yield each tap of *windows*, the index of its outputs, and that of the inputs it reads.

        A tap has one number for each axis of *windows*. The indices have a batch axis in front.
        """
        for taps in product(*(window.taps for window in windows)):
            pairs = [window.overlap(tap) for window, tap in zip(windows, taps, strict=True)]
            outputs, inputs = zip((slice(None), slice(None)), *pairs, strict=True)
            yield taps, outputs, inputs


def window(padding: int, input_size: int, kernel: int, stride: int, dilation: int = 1) -> Window:
    """Return the windows over an axis of *input_size* elements, for these parameters.

    SAME gives ``ceil(input / stride)`` windows; if the number of zeros is odd, the extra zero is
    after the input. VALID gives only windows inside the input, so none if the input is too small.

    >>> window(Padding.SAME, 4, 3, 2)
    Window(input=4, kernel=3, stride=2, dilation=1, output=2, before=0)

    Raises:
        OperatorError: stride, dilation or kernel is below 1.

    Source:
        ComputeOutSize and ComputePaddingWithOffset, tflite/kernels/padding.h.
    """
    if stride < 1:
        raise OperatorError(f"stride is {stride}, expected at least 1")
    if dilation < 1:
        raise OperatorError(f"dilation is {dilation}, expected at least 1")
    if kernel < 1:
        raise OperatorError(f"window size is {kernel}, expected at least 1")
    span = (kernel - 1) * dilation + 1
    output = max(_count(padding, input_size, span, stride), 0)
    missing = (output - 1) * stride + span - input_size if output else 0
    before = max(missing, 0) // 2
    return Window(input_size, kernel, stride, dilation, output, before)


def convolution_windows(
    options: Any, shape: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[Window, Window]:
    """Return a convolution's windows along height and width, from its *options*.

    Args:
        options: object with the attributes ``padding``, ``stride_h``, ``stride_w``,
            ``dilation_h_factor`` and ``dilation_w_factor``.
        shape: shape of the input, ``[N, H, W, C]``.
        kernel: height and width of the window.

    Raises:
        OperatorError: stride, dilation or kernel is below 1; or an input is smaller than a window
            by two strides or more.

    Source:
        ComputePaddingHeightWidthChecked, tflite/kernels/padding.h.
    """
    windows = (
        window(options.padding, shape[1], kernel[0], options.stride_h, options.dilation_h_factor),
        window(options.padding, shape[2], kernel[1], options.stride_w, options.dilation_w_factor),
    )
    require_fit(options.padding, windows)
    return windows


def require_fit(padding: int, windows: Iterable[Window]) -> None:
    """Check that windows are not far larger than the axes to which they belong.

    *padding* is the option SAME or VALID, by which the number of windows is computed.

    Raises:
        OperatorError: a window is larger than the input by two strides or more.

    Source:
        ComputeOutSizeChecked, tflite/kernels/padding.h.
    """
    for each in windows:
        if _count(padding, each.input, each.span, each.stride) < 0:
            raise OperatorError(f"windows of {each.span} are too large for {each.input} positions")


def pool_windows(
    options: Any, shape: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[Window, Window]:
    """Return a pool's windows along height and width, from its *options*.

    If the width is smaller than a window by two strides or more, there are no windows along the
    height either.

    Args:
        options: object with the attributes ``padding``, ``stride_h`` and ``stride_w``.
        shape: shape of the input, ``[N, H, W, C]``.
        kernel: height and width of the window.

    Raises:
        OperatorError: stride, dilation or kernel is below 1.

    Source:
        ComputePaddingHeightWidth, tflite/kernels/padding.h.
    """
    down = window(options.padding, shape[1], kernel[0], options.stride_h)
    across = window(options.padding, shape[2], kernel[1], options.stride_w)
    if _count(options.padding, across.input, across.span, across.stride) < 0:
        down = replace(down, output=0, before=0)
    return down, across


def _count(padding: int, input_size: int, span: int, stride: int) -> int:
    """Return the number of windows along an axis by the official formula; it may be negative.

    *span* is the number of input positions from a window's first to its last tap. The other
    arguments are those of :func:`window`.
    """
    if padding == Padding.SAME:
        return -(-input_size // stride)
    room = input_size - span + stride
    return room // stride if room >= 0 else -(-room // stride)
