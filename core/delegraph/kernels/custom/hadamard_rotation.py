"""aeq.hadamard_rotation: the Walsh-Hadamard transform of blocks of features."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.checks import require_type, tensors_of
from delegraph.operators.flexbuffer_options import flexbuffer_options, integer_option
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel("aeq.hadamard_rotation")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare aeq.hadamard_rotation: blocks of features times a Hadamard matrix.

    A block has ``hadamard_size`` features. The matrix is normalized, so that lengths are kept. If
    the last axis is no multiple of the block size, blocks continue into the next row, and the last
    elements stay unchanged. With four or more axes, only the first two are used. The output keeps
    its declared shape. Integers, which the official kernel accepts, are read as the bits of floats.

    Source:
        tflite/kernels/hadamard_rotation.cc.
    """
    x, y = tensors_of(context, node, 1)
    require_type(x, {TensorType.FLOAT32, TensorType.INT32})
    require_type(y, {TensorType.FLOAT32})
    if len(x.shape) < 2:
        raise OperatorError(f"input has shape {list(x.shape)}, expected two axes or more")
    if math.prod(x.shape) != math.prod(y.shape):
        raise OperatorError(f"output has shape {list(y.shape)}, expected {list(x.shape)}")
    size = integer_option(flexbuffer_options(node.custom_options), "hadamard_size", 1)
    if size & (size - 1):
        raise OperatorError(f"hadamard_size is {size}, expected a power of two")
    context.resize_tensor(y, y.shape)
    *rows, features = x.shape if len(x.shape) == 3 else x.shape[:2]
    transformed = math.prod(rows) * (features // size) * size
    factor = _factor(size)

    def run() -> None:
        np.copyto(y.data, x.data.view(np.float32).reshape(y.data.shape))
        blocks = y.data.reshape(-1)[:transformed].reshape(-1, size)
        _transform(blocks)
        np.multiply(blocks, factor, out=blocks)

    return run


def _factor(size: int) -> np.float32:
    """Return ``1 / sqrt(size)``, rounded as in the official kernel."""
    root = np.sqrt(np.float32(size)) if size < 16 else math.sqrt(size)
    return np.float32(1 / root)


def _transform(blocks: NDArray[Any]) -> None:
    """Replace the rows of *blocks* by their unnormalized transforms, in place.

    >>> row = np.array([[1.0, 2.0, 3.0, 4.0]])
    >>> _transform(row)
    >>> row.tolist()
    [[10.0, -2.0, -4.0, 0.0]]
    """
    step = 1
    while step < blocks.shape[1]:
        pairs = blocks.reshape(len(blocks), blocks.shape[1] // (2 * step), 2, step)
        first, second = pairs[:, :, 0], pairs[:, :, 1]
        difference = first - second
        first += second
        second[...] = difference
        step *= 2
