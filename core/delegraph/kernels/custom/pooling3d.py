"""Custom operators AvgPool3D and MaxPool3D: means and maxima of boxes.

Source:
    tflite/kernels/pooling3d.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
    d, h, w = np.ix_(*(each.inputs_of_outputs().astype(np.int32) for each in windows))
    counts = (d * h * w)[..., np.newaxis]
    sum_dtype = np.dtype(np.float32) if x.type is TensorType.FLOAT32 else np.dtype(np.int32)

    def run() -> None:
        sums = np.zeros(y.data.shape, sum_dtype)
        for _, targets, sources in Window.overlaps(windows):
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
        for _, targets, sources in Window.overlaps(windows):
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
