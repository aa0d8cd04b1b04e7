"""Kernels of SPACE_TO_DEPTH and DEPTH_TO_SPACE."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.output_shape import check_rank, check_type, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import require_type, tensor_types, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, Tensor

_TYPES = tensor_types("FLOAT32 INT8 UINT8 INT32 INT64")


def _block_size(node: Node, x: Tensor, y: Tensor) -> int:
    check_rank(x, (4,))
    require_type(x, _TYPES)
    check_type(y, x)
    size = int(getattr(node.options, "block_size", 0))
    if size < 1:
        raise OperatorError(f"block size is {size}, expected at least 1")
    return size


@kernel("SPACE_TO_DEPTH")
def prepare_space_to_depth(context: OpContext, node: Node) -> Eval:
    """Prepare SPACE_TO_DEPTH: a block of pixels becomes channels of one pixel.

    Source:
        tflite/kernels/space_to_depth.cc.
    """
    x, y = tensors_of(context, node, 1)
    size = _block_size(node, x, y)
    n, h, w, c = x.shape
    if h % size or w % size:
        raise OperatorError(f"{h} x {w} pixels are not whole blocks of {size}")
    h, w = h // size, w // size

    def plan() -> tuple[Shape, Eval]:
        def move() -> None:
            blocks = x.data.reshape(n, h, size, w, size, c).transpose(0, 1, 3, 2, 4, 5)
            np.copyto(y.data.reshape(blocks.shape), blocks)  # [n, h, w, size, size, c]

        return (n, h, w, c * size * size), move

    return size_output(context, y, plan)


@kernel("DEPTH_TO_SPACE")
def prepare_depth_to_space(context: OpContext, node: Node) -> Eval:
    """Prepare DEPTH_TO_SPACE: each pixel's channels become a block of pixels.

    Source:
        tflite/kernels/depth_to_space.cc.
    """
    x, y = tensors_of(context, node, 1)
    size = _block_size(node, x, y)
    n, h, w, depth = x.shape
    c, rest = divmod(depth, size * size)
    if rest:
        raise OperatorError(f"{depth} channels are not a multiple of {size * size}")

    def plan() -> tuple[Shape, Eval]:
        def move() -> None:
            pixels = x.data.reshape(n, h, w, size, size, c).transpose(0, 1, 3, 2, 4, 5)
            np.copyto(y.data.reshape(pixels.shape), pixels)  # [n, h, size, w, size, c]

        return (n, h * size, w * size, c), move

    return size_output(context, y, plan)
