"""Kernel of STABLEHLO_GATHER."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.stablehlo.data_movement import axes, sizes
from delegraph.kernels.stablehlo.indices import StartIndices, batch_shape, offsets, without
from delegraph.kernels.stablehlo.types import ANY
from delegraph.operators.checks import option, require_same_type, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

_TYPES = ANY - {TensorType.COMPLEX128}


@kernel("STABLEHLO_GATHER")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_GATHER: slices of input 0 that start at the indices in input 1.

    Slices are moved so that they lie inside input 0.

    Source:
        tflite/kernels/stablehlo_gather.cc, tensor_slice_util.{h,cc}.
    """
    x, indices, y = tensors_of(context, node, 2)
    require_type(x, _TYPES)
    require_type(indices, {TensorType.INT32, TensorType.INT64})
    require_same_type(x, y)
    slice_sizes = sizes(node, "slice_sizes", len(x.shape))
    room = [size - part for size, part in zip(x.shape, slice_sizes, strict=True)]
    collapsed = axes(node, "collapsed_slice_dims", len(x.shape))
    if min([*room, *slice_sizes], default=0) < 0 or any(
        slice_sizes[axis] != 1 for axis in collapsed
    ):
        raise OperatorError(
            f"slices {list(slice_sizes)} of an operand {list(x.shape)}, expected parts of it, of 1 "
            f"along the collapsed axes {list(collapsed)}"
        )
    vector_axis = int(option(node, "index_vector_dim", 0))
    kept = without(len(x.shape), collapsed)
    batch = batch_shape(indices.shape, vector_axis)
    rank = len(batch) + len(kept)
    offset_dims = sorted(axes(node, "offset_dims", rank))
    if len(offset_dims) != len(kept):
        raise OperatorError(f"{len(offset_dims)} offset_dims, expected {len(kept)}")
    batch_axes = without(rank, offset_dims)
    index_map = axes(node, "start_index_map", len(x.shape))
    starts = StartIndices(indices.shape, vector_axis, index_map, batch_axes, rank)
    steps = dict(
        zip(kept, offsets([slice_sizes[axis] for axis in kept], offset_dims, rank), strict=True)
    )
    shape = dict(zip(offset_dims, (slice_sizes[axis] for axis in kept), strict=True))
    shape |= zip(batch_axes, batch, strict=True)
    context.resize_tensor(y, [shape[axis] for axis in range(rank)])

    def run() -> None:
        if not x.data.size or not y.data.size:
            return
        begins = starts.read(indices.data)
        where = tuple(
            begins.get(axis, np.int64(0)).clip(0, room[axis]) + steps.get(axis, 0)
            for axis in range(x.data.ndim)
        )
        y.data[...] = x.data[where]

    return run
