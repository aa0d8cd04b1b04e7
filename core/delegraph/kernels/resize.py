"""Kernels of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from delegraph.arithmetic.output_shape import (
    are_known,
    check_rank,
    integers,
    size_output,
)
from delegraph.arithmetic.resize_bilinear import resizer
from delegraph.arithmetic.resize_nearest import nearest_positions
from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, option, require_type, tensor_types, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, Tensor
from delegraph.schema.enums import TensorType

_BILINEAR_TYPES = {TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16}
_NEAREST_TYPES = _BILINEAR_TYPES | tensor_types("FLOAT16 BFLOAT16 BOOL UINT16 INT32 UINT32")
LONGEST_SIDE = 1 << 24  # positions are float32, which cannot count further
Planner = Callable[[Tensor, Tensor, tuple[int, int], bool, bool], Eval]


@kernel("RESIZE_BILINEAR")
def prepare_resize_bilinear(context: OpContext, node: Node) -> Eval:
    """Prepare RESIZE_BILINEAR: interpolated pixels; input 1 is the new height and width.

    Types are float32, uint8, int8 and int16.

    Raises:
        OperatorError: both options are set and the size is known in prepare. If the size is
            computed, the official kernel accepts both options.

    Source:
        tflite/kernels/resize_bilinear.cc.
    """
    x, size_input, _ = tensors_of(context, node, 2)
    require_type(x, _BILINEAR_TYPES)
    is_known = are_known([size_input])
    if is_known and option(node, "align_corners", False) and _half_pixel_centers(node):
        raise OperatorError("align_corners and half_pixel_centers are both set, expected one")
    return _prepare(context, node, partial(resizer, numerics=context.numerics))


@kernel("RESIZE_NEAREST_NEIGHBOR")
def prepare_resize_nearest(context: OpContext, node: Node) -> Eval:
    """Prepare RESIZE_NEAREST_NEIGHBOR: copied pixels; inputs as in RESIZE_BILINEAR.

    Types are numbers of up to 4 bytes; both options may be set.

    Source:
        tflite/kernels/resize_nearest_neighbor.cc; reference/resize_nearest_neighbor.h.
    """
    require_type(tensors_of(context, node, 2)[0], _NEAREST_TYPES)
    return _prepare(context, node, _nearest)


def _prepare(context: OpContext, node: Node, planner: Planner) -> Eval:
    x, size_input, y = tensors_of(context, node, 2)
    check_rank(x, (4,))
    adopt_type(y, x.type)
    if size_input.shape != (2,) or size_input.type is not TensorType.INT32:
        raise OperatorError(
            f"size is {size_input.type.name}{list(size_input.shape)}, expected INT32[2]"
        )
    corners, centers = bool(option(node, "align_corners", False)), _half_pixel_centers(node)

    def plan() -> tuple[Shape, Eval]:
        height, width = integers(size_input)
        if min(height, width) < 1 or (min(x.shape[1:3]) < 1 and x.shape[0] * x.shape[3] > 0):
            raise OperatorError(f"cannot resize {list(x.shape)} to {height} x {width}")
        if max(height, width) > LONGEST_SIDE:
            raise OperatorError(f"{height} x {width} is beyond {LONGEST_SIDE} a side")
        shape = (x.shape[0], height, width, x.shape[3])
        if 0 in shape:
            return shape, lambda: None
        return shape, planner(x, y, (height, width), corners, centers)

    return size_output(context, y, plan, shape_inputs=(size_input,))


def _half_pixel_centers(node: Node) -> bool:
    return bool(option(node, "half_pixel_centers", False))


def _nearest(
    x: Tensor, y: Tensor, size: tuple[int, int], align_corners: bool, half_pixel_centers: bool
) -> Eval:
    rows, columns = (
        nearest_positions(old, new, align_corners, half_pixel_centers)
        for old, new in zip(x.shape[1:3], size, strict=True)
    )

    def resize() -> None:
        np.take(x.data.take(rows, 1), columns, 2, y.data, "clip")

    return resize
