"""Geometry of sliding windows: output sizes and the zeros around the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delegraph.errors import OperatorError
from delegraph.schema.enums import Padding


@dataclass(frozen=True, slots=True)
class Window:
    """How a window slides along one axis.

    Attributes:
        input: positions of the input.
        kernel: taps of the window.
        stride: step between windows.
        dilation: step between taps.
        output: number of windows.
        before: zeros before the first input position.
    """

    input: int
    kernel: int
    stride: int
    dilation: int
    output: int
    before: int

    @property
    def span(self) -> int:
        """Positions between a window's first and last tap, both included."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def after(self) -> int:
        """Zeros behind the input that the windows reach; 0 when they end inside it."""
        if self.output == 0:
            return 0
        reach = (self.output - 1) * self.stride + self.span - self.before
        return max(reach - self.input, 0)

    @property
    def padded(self) -> int:
        """Input positions with the zeros on both sides."""
        return self.before + self.input + self.after

    @property
    def is_pointwise(self) -> bool:
        """Whether output position i reads input position i and no other."""
        return self.kernel == 1 and self.stride == 1 and self.before == 0

    def valid_outputs(self, tap: int) -> tuple[int, int]:
        """Return first and end of the outputs whose *tap* falls inside the input."""
        offset = tap * self.dilation - self.before
        first = max(-(offset // self.stride), 0)
        end = (self.input - 1 - offset) // self.stride + 1
        return min(first, self.output), max(min(end, self.output), min(first, self.output))


def window(padding: int, input_size: int, kernel: int, stride: int, dilation: int = 1) -> Window:
    """Return how windows cover one axis.

    SAME gives ``ceil(input / stride)`` windows, the odd zero after; VALID only whole windows, so
    none when the input is too small.

    >>> window(Padding.SAME, 4, 3, 2)
    Window(input=4, kernel=3, stride=2, dilation=1, output=2, before=0)

    Raises:
        OperatorError: a stride, dilation or kernel below 1.

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
    output = _output_size(padding, input_size, span, stride)
    missing = (output - 1) * stride + span - input_size if output else 0
    before = max(missing, 0) // 2
    return Window(input_size, kernel, stride, dilation, output, before)


def windows_2d(
    options: Any, shape: tuple[int, ...], kernel: tuple[int, ...], *, dilated: bool = False
) -> tuple[Window, Window]:
    """Return the windows along height and width that a node's *options* ask for.

    Args:
        options: with ``padding``, ``stride_h``, ``stride_w`` and, if *dilated*,
            ``dilation_h_factor`` and ``dilation_w_factor``.
        shape: of the input, ``[N, H, W, C]``.
        kernel: height and width of the window.
        dilated: whether the operator has dilation.

    Raises:
        OperatorError: as :func:`window`.
    """
    dilation_h = options.dilation_h_factor if dilated else 1
    dilation_w = options.dilation_w_factor if dilated else 1
    return (
        window(options.padding, shape[1], kernel[0], options.stride_h, dilation_h),
        window(options.padding, shape[2], kernel[1], options.stride_w, dilation_w),
    )


def _output_size(padding: int, input_size: int, span: int, stride: int) -> int:
    if padding == Padding.SAME:
        return -(-input_size // stride)
    return max((input_size - span + stride) // stride, 0)
