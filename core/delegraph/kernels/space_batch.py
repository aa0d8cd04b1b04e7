"""Kernels of SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.output_shape import check_rank, check_type, integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import INDEX, require_type, require_zero_points, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, Tensor, element_count
from delegraph.schema.enums import TensorType


@kernel("SPACE_TO_BATCH_ND")
def prepare_space_to_batch(context: OpContext, node: Node) -> Eval:
    """Prepare SPACE_TO_BATCH_ND: distributes the pixels of a padded image over several images.

    The number of images is multiplied by the product of the block sizes.

    Inputs: image ``[N, spatial.., C]``, block sizes, paddings ``[spatial, 2]``. The padding value
    is the zero point of the output for bytes, and 0 for other types.

    Source:
        tflite/kernels/space_to_batch_nd.cc.
    """
    x, block_input, paddings, y = tensors_of(context, node, 3)
    _check(x, block_input, paddings, y)
    zero = y.zero_point if y.type in (TensorType.UINT8, TensorType.INT8) else 0

    def plan() -> tuple[Shape, Eval]:
        block, pads = _block(block_input), _pairs(paddings)
        spatial = x.shape[1:-1]
        padded = [size + sum(pad) for size, pad in zip(spatial, pads, strict=True)]
        if any(size % part for size, part in zip(padded, block, strict=True)):
            raise OperatorError(f"padded size {padded} is not whole blocks of {block}")
        small = [size // part for size, part in zip(padded, block, strict=True)]
        n, c = x.shape[0], x.shape[-1]
        inside = [slice(lo, lo + size) for size, (lo, _) in zip(spatial, pads, strict=True)]
        split = [n, *(part for pair in zip(small, block, strict=True) for part in pair), c]

        def deal() -> None:
            image = np.full((n, *padded, c), zero, y.dtype)
            image[(slice(None), *inside)] = x.data
            parts = image.reshape(split).transpose(_blocks_first(len(block)))
            np.copyto(y.data.reshape(parts.shape), parts)

        return (n * element_count(block), *small, c), deal

    return size_output(context, y, plan, shape_inputs=(block_input, paddings))


@kernel("BATCH_TO_SPACE_ND")
def prepare_batch_to_space(context: OpContext, node: Node) -> Eval:
    """Prepare BATCH_TO_SPACE_ND: SPACE_TO_BATCH_ND reversed, then cropping.

    Source:
        tflite/kernels/batch_to_space_nd.cc.
    """
    x, block_input, crops_input, y = tensors_of(context, node, 3)
    _check(x, block_input, crops_input, y)

    def plan() -> tuple[Shape, Eval]:
        block, crops = _block(block_input), _pairs(crops_input)
        n, rest = divmod(x.shape[0], element_count(block))
        if rest:
            raise OperatorError(f"batch {x.shape[0]} is not a multiple of the blocks {block}")
        small, c = x.shape[1:-1], x.shape[-1]
        full = [size * part for size, part in zip(small, block, strict=True)]
        cropped = [size - sum(crop) for size, crop in zip(full, crops, strict=True)]
        if min(cropped) < 0:
            raise OperatorError(f"crops {crops} are larger than the image {full}")
        kept = [slice(lo, lo + size) for size, (lo, _) in zip(cropped, crops, strict=True)]
        back = np.argsort(_blocks_first(len(block)))

        def collect() -> None:
            parts = x.data.reshape(*block, n, *small, c).transpose(back)
            image = parts.reshape(n, *full, c)
            np.copyto(y.data, image[(slice(None), *kept)])

        return (n, *cropped, c), collect

    return size_output(context, y, plan, shape_inputs=(block_input, crops_input))


def _blocks_first(spatial: int) -> list[int]:
    """Return the permutation of ``[n, s0, b0, s1, b1, c]`` to ``[b0, b1, n, s0, s1, c]``.

    *spatial* is the number of axes ``s0``, ``s1``.
    """
    inside = [2 + 2 * i for i in range(spatial)]
    outside = [1 + 2 * i for i in range(spatial)]
    return [*inside, 0, *outside, 1 + 2 * spatial]


def _check(x: Tensor, block: Tensor, pairs: Tensor, y: Tensor) -> None:
    check_rank(x, (3, 4))
    check_type(y, x)
    if x.type is TensorType.STRING:
        raise OperatorError("input is STRING, expected numbers")
    require_type(block, INDEX)
    require_type(pairs, INDEX)
    spatial = len(x.shape) - 2
    if block.shape != (spatial,) or pairs.shape != (spatial, 2):
        raise OperatorError(
            f"block {list(block.shape)} and pairs {list(pairs.shape)}, "
            f"expected [{spatial}] and [{spatial}, 2]"
        )
    if x.type is TensorType.INT16:
        require_zero_points(x)
    if (x.scale, x.zero_point) != (y.scale, y.zero_point):
        raise OperatorError("input and output differ in scale or zero point, expected equal ones")


def _block(tensor: Tensor) -> list[int]:
    block = integers(tensor)
    if min(block) < 1:
        raise OperatorError(f"block sizes are {block}, expected at least 1")
    return block


def _pairs(tensor: Tensor) -> list[tuple[int, int]]:
    flat = integers(tensor)
    if min(flat) < 0:
        raise OperatorError(f"paddings or crops {flat} have a negative value, expected none")
    return list(zip(flat[::2], flat[1::2], strict=True))
