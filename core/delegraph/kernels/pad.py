"""Kernels of PAD, PADV2 and MIRROR_PAD."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.elements import on_elements
from delegraph.arithmetic.output_shape import check_type, integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    WIDE_INDEX,
    require_counts,
    require_type,
    require_zero_points,
    tensor_types,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import (
    Eval,
    Node,
    OpContext,
    input_tensor,
    optional_input,
    output_tensor,
)
from delegraph.operators.tensor import Shape, Tensor, element_count
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUANTIZED = (TensorType.UINT8, TensorType.INT8, TensorType.INT16)
Pads = list[tuple[int, int]]
"""Numbers of elements added before and after, for each dimension."""

_PADDINGS = (TensorType.INT8, TensorType.INT16, *WIDE_INDEX)
_TYPES = tensor_types("FLOAT32 FLOAT16 BFLOAT16 INT8 UINT8 INT16 INT32 INT64 BOOL")


@kernel("PADV2")
@kernel("PAD")
def prepare_pad(context: OpContext, node: Node) -> Eval:
    """Prepare PAD or PADV2: the input with one value added around it.

    The padding value is input 2, or else the zero point of a quantized output, or else 0.

    Source:
        tflite/kernels/pad.cc, Prepare and EvalInt.
    """
    require_counts(node, (2, 3))
    x, paddings = input_tensor(context, node, 0), input_tensor(context, node, 1)
    value, y = optional_input(context, node, 2), output_tensor(context, node)
    require_type(x, _TYPES)
    check_type(y, x)
    _check_paddings(x, paddings, _PADDINGS)
    if value is not None:
        _check_value(value, x, y)
    zero = y.zero_point if y.type in QUANTIZED else 0

    def plan() -> tuple[Shape, Eval]:
        pads = _read(paddings, len(x.shape))
        shape = [before + size + after for size, (before, after) in zip(x.shape, pads, strict=True)]
        interior, borders = _regions(x.shape, pads)

        def pad(source: NDArray[Any], target: NDArray[Any]) -> None:
            filler = zero if value is None else value.data.reshape(-1)[0]
            for border in borders:
                target[border] = filler
            target[interior] = source

        return shape, on_elements(x, y, pad)

    return size_output(context, y, plan, shape_inputs=(paddings,), packed=True)


def _check_paddings(
    x: Tensor, paddings: Tensor, types: Collection[TensorType] = WIDE_INDEX
) -> None:
    require_type(paddings, types)
    if paddings.shape != (len(x.shape), 2):
        raise OperatorError(
            f"paddings have shape {list(paddings.shape)}, expected [{len(x.shape)}, 2]"
        )


def _check_value(value: Tensor, x: Tensor, y: Tensor) -> None:
    check_type(value, x, "padding value")
    if element_count(value.shape) != 1:
        raise OperatorError(f"padding value has shape {list(value.shape)}, expected one element")
    same = (value.scale, value.zero_point) == (y.scale, y.zero_point)
    if y.type in QUANTIZED and x.quantization is not None and not same:
        raise OperatorError(
            f"padding value has scale {value.scale} and zero point {value.zero_point}, "
            f"expected the output's {y.scale} and {y.zero_point}"
        )


def _read(paddings: Tensor, rank: int) -> Pads:
    flat = integers(paddings)
    if min(flat, default=0) < 0:
        raise OperatorError(f"paddings {flat} have a negative value, expected none")
    return [(int(flat[2 * i]), int(flat[2 * i + 1])) for i in range(rank)]


def _regions(shape: Sequence[int], pads: Pads) -> tuple[tuple[slice, ...], list[tuple[slice, ...]]]:
    """Return the index of the input's block in the output, and indices of the border's blocks.

    *shape* is the input's shape. *pads* has, for each axis, the lengths before and after it.
    """
    interior = tuple(
        slice(before, before + size) for size, (before, _) in zip(shape, pads, strict=True)
    )
    borders = []
    for axis, (before, after) in enumerate(pads):
        end = before + shape[axis]
        for start, length in ((0, before), (end, after)):
            if length:
                borders.append((*interior[:axis], slice(start, start + length)))
    return interior, borders


@kernel("MIRROR_PAD")
def prepare_mirror_pad(context: OpContext, node: Node) -> Eval:
    """Prepare MIRROR_PAD: the input with its reflection around it.

    Only SYMMETRIC repeats the edge element.

    Source:
        tflite/kernels/mirror_pad.cc.
    """
    x, paddings = input_tensor(context, node, 0), input_tensor(context, node, 1)
    y = output_tensor(context, node)
    if x.type is TensorType.STRING or x.is_packed:
        raise OperatorError(f"input is {x.type.name}, expected whole-byte numbers")
    check_type(y, x)
    if x.type is TensorType.INT16:
        require_zero_points(x)
    _check_paddings(x, paddings)
    skip = 0 if int(getattr(node.options, "mode", 0)) == 1 else 1  # MirrorPadMode: 0 is REFLECT

    def plan() -> tuple[Shape, Eval]:
        pads = _read(paddings, len(x.shape))
        for size, pad in zip(x.shape, pads, strict=True):
            if max(pad) > size - skip:
                raise OperatorError(f"paddings {pad} are longer than the mirrored part of {size}")
        shape = [before + size + after for size, (before, after) in zip(x.shape, pads, strict=True)]
        return shape, on_elements(x, y, _mirror(x.shape, pads, skip))

    return size_output(context, y, plan, shape_inputs=(paddings,), packed=True)


def _mirror(shape: Sequence[int], pads: Pads, skip: int) -> Any:
    interior, _ = _regions(shape, pads)
    moves = []
    for axis, (before, after) in enumerate(pads):
        end = before + shape[axis]
        # Axes before this one are complete; later axes only have their interior so far.
        lead, rest = (slice(None),) * axis, interior[axis + 1 :]
        for start, length, first in ((0, before, before + skip), (end, after, end - skip - after)):
            if length:
                target = (*lead, slice(start, start + length), *rest)
                mirrored = (*lead, slice(first, first + length), *rest)
                moves.append((target, mirrored, axis))

    def mirror(source: NDArray[Any], target: NDArray[Any]) -> None:
        target[interior] = source
        for where, mirrored, axis in moves:
            target[where] = np.flip(target[mirrored], axis)

    return mirror
