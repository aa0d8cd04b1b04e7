"""Custom operators AvgPool3D and MaxPool3D: means and maxima of boxes.

Source:
    tflite/kernels/pooling3d.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.padding import Window, window
from delegraph.errors import OperatorError
from delegraph.operators.checks import require_rank, require_same_type, require_type, tensors_of
from delegraph.operators.flexbuffer_options import flexbuffer_options
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import Padding, TensorType

_TYPES = {TensorType.FLOAT32, TensorType.INT8, TensorType.INT16}
_SCALE_TOLERANCE = 1e-6


@kernel("AvgPool3D")
def prepare_average(context: OpContext, node: Node) -> Eval:
    """Prepare AvgPool3D: means of boxes.

    Integer means are rounded half away from zero.
    """
    x, y, windows = _prepare(context, node)
    counts = _counts(windows)
    sum_dtype = np.dtype(np.float32) if x.type is TensorType.FLOAT32 else np.dtype(np.int32)

    def run() -> None:
        sums = np.zeros(y.data.shape, sum_dtype)
        for targets, sources in _taps(windows):
            sums[targets] += x.data[sources]
        if sum_dtype.kind == "f":
            np.divide(sums, counts, out=y.data, casting="same_kind")
        else:
            means = (np.abs(sums) + counts // 2) // counts
            np.copyto(y.data, np.where(sums < 0, -means, means), casting="same_kind")

    return run


@kernel("MaxPool3D")
def prepare_max(context: OpContext, node: Node) -> Eval:
    """Prepare MaxPool3D: the largest element of each box.

    NaN is ignored.
    """
    x, y, windows = _prepare(context, node)
    is_float = x.type is TensorType.FLOAT32
    least = np.finfo(x.dtype).min if is_float else np.iinfo(x.dtype).min

    def run() -> None:
        y.data.fill(least)
        for targets, sources in _taps(windows):
            np.fmax(y.data[targets], x.data[sources], out=y.data[targets])

    return run


def _prepare(context: OpContext, node: Node) -> tuple[Tensor, Tensor, list[Window]]:
    x, y = tensors_of(context, node, 1)
    require_type(x, _TYPES)
    require_same_type(x, y)
    require_rank(x, 5)
    if x.type is TensorType.INT8 and abs(x.scale - y.scale) > _SCALE_TOLERANCE:
        raise OperatorError(f"scales are {x.scale} and {y.scale}, expected the same")
    options = flexbuffer_options(node.custom_options)
    if options.get("data_format") != "NDHWC":
        raise OperatorError(f"data_format is {options.get('data_format')!r}, expected 'NDHWC'")
    padding = str(options.get("padding"))
    if padding not in Padding.__members__:
        raise OperatorError(f"padding is {padding!r}, expected 'SAME' or 'VALID'")
    sizes, strides = _spatial(options, "ksize"), _spatial(options, "strides")
    windows = [
        window(Padding[padding], *axis) for axis in zip(x.shape[1:4], sizes, strides, strict=True)
    ]
    context.resize_tensor(y, (x.shape[0], *(w.output for w in windows), x.shape[4]))
    return x, y, windows


def _spatial(options: dict[str, Any], name: str) -> list[int]:
    """Return the numbers of the option *name* for depth, height and width.

    The option has five numbers; the first and the last, for batch and channels, must be 1.
    """
    values = [int(value) for value in options.get(name, ())]
    if len(values) != 5 or values[0] != 1 or values[4] != 1:
        raise OperatorError(f"{name} is {values}, expected [1, D, H, W, 1]")
    return values[1:4]


def _taps(windows: list[Window]) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Yield, for each tap, the index of the outputs that use it and the index of its inputs.

    A tap is a position in the box. *windows* are the windows along depth, height and width.
    """
    for taps in product(*(w.taps for w in windows)):
        targets, sources = [slice(None)], [slice(None)]
        for w, tap in zip(windows, taps, strict=True):
            first, end = w.valid_outputs(tap)
            start = first * w.stride - w.before + tap
            count = max(end - first, 0)
            targets.append(slice(first, end))
            sources.append(slice(start, start + count * w.stride, w.stride) if count else slice(0))
        yield tuple(targets), tuple(sources)


def _counts(windows: list[Window]) -> NDArray[np.int32]:
    """Return the number of inputs in each box of *windows*: ``[D, H, W, 1], int32``."""
    lengths = []
    for w in windows:
        length = np.zeros(w.output, np.int32)
        for tap in w.taps:
            length[slice(*w.valid_outputs(tap))] += 1
        lengths.append(length)
    d, h, w_ = np.ix_(*lengths)
    counts: NDArray[np.int32] = (d * h * w_)[..., np.newaxis]
    return counts
