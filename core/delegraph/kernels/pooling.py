"""Kernels of AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D.

A window is reduced along the height first, then along the width. So a pool of ``kh * kw`` taps
takes ``kh + kw`` passes.

Source:
    tflite/kernels/pooling.cc; AveragePool and MaxPool, tflite/kernels/internal/optimized.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.activation import (
    clamp,
    finite_activation_range,
    quantized_activation_range,
)
from delegraph.arithmetic.padding import Window, pool_windows
from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import (
    options_or_defaults,
    require_same_type,
    require_type,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_QUANTIZED = (TensorType.UINT8, TensorType.INT8, TensorType.INT16)


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Tensors, windows and options of a pooling node that has been checked."""

    x: Tensor  # [N, H, W, C]
    y: Tensor  # [N, OH, OW, C]
    windows: tuple[Window, Window]
    activation: int

    @property
    def range(self) -> tuple[float, float]:
        """Limits of the fused activation for stored values; always finite for floats."""
        if self.x.type == TensorType.FLOAT32:
            return finite_activation_range(self.activation)
        return quantized_activation_range(self.activation, self.y)

    def counts(self) -> NDArray[np.float32]:
        """Return the number of inputs in each window; zeros around the image do not count.

        Returns:
            ``[OH, OW, 1], float32``.
        """
        down, across = (window.inputs_of_outputs() for window in self.windows)
        return np.outer(down, across)[:, :, np.newaxis].astype(np.float32)


@kernel("AVERAGE_POOL_2D")
def prepare_average(context: OpContext, node: Node) -> Eval:
    """Prepare AVERAGE_POOL_2D: the mean of each window.

    Integer means are rounded half away from zero.

    Raises:
        OperatorError: the type is not float32, uint8, int8 or int16, or a window is invalid.
    """
    pool = _check(context, node, (TensorType.FLOAT32, *_QUANTIZED))
    if pool.x.type == TensorType.FLOAT32:
        return _float_means(context, pool)
    return _rounded_means(context, pool)


@kernel("MAX_POOL_2D")
def prepare_max(context: OpContext, node: Node) -> Eval:
    """Prepare MAX_POOL_2D: the largest element of each window; NaN is ignored.

    Raises:
        OperatorError: the type is not float32, uint8, int8 or int16, or a window is invalid.
    """
    pool = _check(context, node, (TensorType.FLOAT32, *_QUANTIZED))
    is_float = pool.x.type == TensorType.FLOAT32
    least = float(np.finfo(np.float32).min if is_float else np.iinfo(pool.x.dtype).min)
    reduce = _Reduction(context, pool, pool.x.dtype, np.fmax, least)
    low, high = pool.range

    def evaluate() -> None:
        for image, result in zip(pool.x.data, pool.y.data, strict=True):
            reduce(image, result)
            np.clip(result, low, high, out=result)

    return evaluate


@kernel("L2_POOL_2D")
def prepare_l2(context: OpContext, node: Node) -> Eval:
    """Prepare L2_POOL_2D: the root of the mean square of each window.

    Raises:
        OperatorError: the type is not float32, or a window is invalid.
    """
    pool = _check(context, node, (TensorType.FLOAT32,))
    squares = context.scratch(pool.x.shape[1:], np.float32)
    reduce = _Reduction(context, pool, np.dtype(np.float32), np.add, 0)
    counts, (low, high) = pool.counts(), pool.range

    def evaluate() -> None:
        for image, result in zip(pool.x.data, pool.y.data, strict=True):
            np.square(image, out=squares.data)
            reduce(squares.data, result)
            result /= counts
            np.sqrt(result, out=result)
            clamp(result, low, high)

    return evaluate


def _float_means(context: OpContext, pool: _Pool) -> Eval:
    reduce = _Reduction(context, pool, pool.x.dtype, np.add, 0)
    counts, (low, high) = pool.counts(), pool.range

    def evaluate() -> None:
        for image, result in zip(pool.x.data, pool.y.data, strict=True):
            reduce(image, result)
            result /= counts
            clamp(result, low, high)

    return evaluate


def _rounded_means(context: OpContext, pool: _Pool) -> Eval:
    # A mean that is not a half differs from a half by more than float64's rounding error.
    wide = np.dtype(np.float64)
    reduce = _Reduction(context, pool, wide, np.add, 0)
    means, halves = (context.scratch(pool.y.shape[1:], wide) for _ in range(2))
    counts, (low, high) = pool.counts(), pool.range

    def evaluate() -> None:
        for image, result in zip(pool.x.data, pool.y.data, strict=True):
            mean, half = means.data, halves.data
            reduce(image, mean)
            mean /= counts
            mean += np.copysign(0.5, mean, out=half)
            np.clip(mean, low, high, out=mean)
            np.copyto(result, mean, casting="unsafe")  # truncates

    return evaluate


def _check(context: OpContext, node: Node, types: tuple[TensorType, ...]) -> _Pool:
    x, y = tensors_of(context, node, 1)
    options = options_or_defaults(node, "MAX_POOL_2D")  # all pools have the same
    require_type(x, types)
    require_same_type(x, y)
    if len(x.shape) != 4:
        raise OperatorError(f"input is {list(x.shape)}, expected 4 dimensions")
    kernel_size = (options.filter_height, options.filter_width)
    windows = pool_windows(options, x.shape, kernel_size)
    context.resize_tensor(y, (x.shape[0], *(window.output for window in windows), x.shape[3]))
    return _Pool(x, y, windows, options.fused_activation_function)


class _Reduction:
    """Reduces the windows of one image along the height, then along the width."""

    def __init__(
        self,
        context: OpContext,
        pool: _Pool,
        dtype: np.dtype[Any],
        function: Callable[..., Any],
        identity: float,
    ) -> None:
        self._down, self._across = pool.windows
        self._function, self._identity = function, identity
        _, _, width, channels = pool.x.shape
        self._rows = context.scratch((self._down.output, width, channels), dtype)

    def __call__(self, image: NDArray[Any], out: NDArray[Any]) -> None:
        """Store the reduced windows of *image*, ``[H, W, C]``, in *out*, ``[OH, OW, C]``."""
        rows = self._rows.data
        self._reduce(image, rows, self._down)
        self._reduce(rows.swapaxes(0, 1), out.swapaxes(0, 1), self._across)

    def _reduce(self, x: NDArray[Any], y: NDArray[Any], window: Window) -> None:
        """Reduce each *window* of *x* along axis 0 into *y*; taps outside of *x* do not count."""
        y.fill(self._identity)
        for tap in window.taps:
            outputs, inputs = window.overlap(tap)
            self._function(y[outputs], x[inputs], out=y[outputs])
