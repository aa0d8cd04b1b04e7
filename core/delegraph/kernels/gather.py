"""Kernels of GATHER and GATHER_ND: elements or slices selected by indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.elements import on_elements
from delegraph.arithmetic.indices import check_bounds, row_numbers
from delegraph.arithmetic.output_shape import normalized_axis, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    adopt_type,
    require_rank,
    require_type,
    tensor_types,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, Tensor, element_count
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

INDEX_TYPES = (TensorType.INT16, TensorType.INT32, TensorType.INT64)

_TYPES = tensor_types("FLOAT32 FLOAT16 BFLOAT16 INT8 UINT8 INT16 INT32 INT64 BOOL STRING")


@kernel("GATHER")
def prepare_gather(context: OpContext, node: Node) -> Eval:
    """Prepare GATHER: slices of input 0 along an axis, chosen by input 1.

    With ``batch_dims = b``, the first *b* dimensions of both inputs are batch dimensions.

    Source:
        tflite/kernels/gather.cc.
    """
    x, positions, y = tensors_of(context, node, 2)
    require_type(x, _TYPES | {TensorType.INT4})
    if x.type is TensorType.STRING:
        require_rank(x, 1)
    adopt_type(y, x.type)
    if positions.type not in INDEX_TYPES:
        raise OperatorError(f"positions are {positions.type.name}, expected INT16, INT32 or INT64")
    axis = normalized_axis(int(getattr(node.options, "axis", 0)), len(x.shape))
    batch_dims = _batch_dims(int(getattr(node.options, "batch_dims", 0)), axis, x, positions)

    def plan() -> tuple[Shape, Eval]:
        shape = x.shape[:axis] + positions.shape[batch_dims:] + x.shape[axis + 1 :]
        if batch_dims:
            return shape, on_elements(x, y, _batched(x, positions, axis, batch_dims))
        return shape, on_elements(x, y, _along(positions, axis))

    return size_output(context, y, plan, fold=(x, positions), packed=True)


def _batch_dims(option: int, axis: int, x: Tensor, positions: Tensor) -> int:
    count = option + len(positions.shape) if option < 0 else option
    if not 0 <= count <= min(axis, len(positions.shape)):
        raise OperatorError(
            f"batch_dims {option} does not fit axis {axis} and positions {list(positions.shape)}"
        )
    if x.shape[:count] != positions.shape[:count]:
        raise OperatorError(
            f"the first {count} dimensions of {list(x.shape)} and {list(positions.shape)} differ"
        )
    return count


def _along(positions: Tensor, axis: int) -> Callable[[NDArray[Any], NDArray[Any]], object]:
    def gather(source: NDArray[Any], target: NDArray[Any]) -> None:
        check_bounds(positions.data, source.shape[axis])
        if target.size:
            np.take(source, positions.data, axis, target, "clip")  # "raise" would buffer the result

    return gather


def _batched(
    x: Tensor, positions: Tensor, axis: int, batch_dims: int
) -> Callable[[NDArray[Any], NDArray[Any]], object]:
    batch, outer = element_count(x.shape[:batch_dims]), element_count(x.shape[batch_dims:axis])
    size, inner = x.shape[axis], element_count(x.shape[axis + 1 :])
    picked = element_count(positions.shape[batch_dims:])
    b = np.arange(batch)[:, None, None]
    o = np.arange(outer)[None, :, None]

    def gather(source: NDArray[Any], target: NDArray[Any]) -> None:
        check_bounds(positions.data, size)
        p = positions.data.reshape(batch, 1, picked)
        blocks = source.reshape(batch, outer, size, inner)[b, o, p]
        target[...] = blocks.reshape(target.shape)

    return gather


@kernel("GATHER_ND")
def prepare_gather_nd(context: OpContext, node: Node) -> Eval:
    """Prepare GATHER_ND: slices of input 0 at index tuples, the last dimension of input 1.

    Source:
        tflite/kernels/gather_nd.cc.
    """
    x, indices, y = tensors_of(context, node, 2)
    require_type(x, _TYPES)
    adopt_type(y, x.type)
    if indices.type not in INDEX_TYPES:
        raise OperatorError(f"indices are {indices.type.name}, expected INT16, INT32 or INT64")
    if not x.shape or not indices.shape or indices.shape[-1] > len(x.shape):
        raise OperatorError(
            f"indices have shape {list(indices.shape)}, expected at least rank 1 and a last "
            f"dimension of at most {len(x.shape)}, the rank of the input {list(x.shape)}"
        )
    depth = indices.shape[-1]

    def plan() -> tuple[Shape, Eval]:
        shape = indices.shape[:-1] + x.shape[depth:]
        flat = (element_count(x.shape[:depth]), element_count(x.shape[depth:]))
        count = element_count(indices.shape[:-1])

        def gather(source: NDArray[Any], target: NDArray[Any]) -> None:
            rows = row_numbers(indices.data, x.shape[:depth])
            if target.size:
                target = target.reshape(count, flat[1])
                np.take(source.reshape(flat), rows, 0, target, "clip")

        return shape, on_elements(x, y, gather)

    return size_output(context, y, plan, packed=True)
