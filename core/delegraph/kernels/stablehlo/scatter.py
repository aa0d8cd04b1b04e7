"""Kernel of STABLEHLO_SCATTER."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError
from delegraph.kernels.stablehlo.data_movement import axes
from delegraph.kernels.stablehlo.indices import StartIndices, batch_shape, offsets, without
from delegraph.kernels.stablehlo.types import LITERT
from delegraph.operators.checks import option, require_same_type, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import CallableSubgraph, Eval, Node, OpContext
from delegraph.schema.enums import TensorType

Array = NDArray[Any]
Update = Callable[[Array, Array, Array], object]
"""Function that updates array elements at positions, which may repeat, with values, in order."""


@kernel("STABLEHLO_SCATTER")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_SCATTER: input 0, updated by input 2.

    Input 1 has the positions of the updates.

    Updates outside of input 0 are ignored. A subgraph combines an element and its update. The
    subgraph has one operator, or none if the update replaces the element.

    Source:
        tflite/kernels/stablehlo_scatter.cc, tensor_slice_util.{h,cc}.
    """
    x, indices, updates, y = tensors_of(context, node, 3)
    require_type(x, LITERT)
    require_type(indices, {TensorType.INT32, TensorType.INT64})
    for tensor in (updates, y):
        require_same_type(tensor, x)
    context.resize_tensor(y, x.shape)
    body = context.subgraph(int(option(node, "update_computation_subgraph_index", 0)))
    update = _update(body)
    rank = len(updates.shape)
    window = without(len(x.shape), axes(node, "inserted_window_dims", len(x.shape)))
    window_dims = axes(node, "update_window_dims", rank)
    if len(window_dims) != len(window):
        raise OperatorError(f"{len(window_dims)} update_window_dims, expected {len(window)}")
    vector_dim = int(option(node, "index_vector_dim", 0))
    scatter_dims = without(rank, window_dims)
    starts = StartIndices(
        indices.shape,
        vector_dim,
        axes(node, "scatter_dims_to_operand_dims", len(x.shape)),
        scatter_dims,
        rank,
    )
    places = tuple(updates.shape[axis] for axis in scatter_dims)
    if places != batch_shape(indices.shape, vector_dim):
        raise OperatorError(
            f"updates {list(updates.shape)} do not have a place for each of the indices "
            f"{list(indices.shape)}"
        )
    window_sizes = [updates.shape[axis] for axis in window_dims]
    steps = dict(zip(window, offsets(window_sizes, window_dims, rank), strict=True))

    def run() -> None:
        np.copyto(y.data, x.data)
        if not updates.data.size or not y.data.size:
            return
        begins, shape = starts.read(indices.data), updates.data.shape
        where = [
            np.broadcast_to(begins.get(axis, 0) + steps.get(axis, np.int64(0)), shape)
            for axis in range(y.data.ndim)
        ]
        inside = np.ones(shape, np.bool_)
        for places, size in zip(where, y.data.shape, strict=True):
            inside &= (places >= 0) & (places < size)
        flat = np.zeros(np.count_nonzero(inside), np.int64)
        for places, size in zip(where, y.data.shape, strict=True):
            flat = flat * size + places[inside]
        update(y.data.reshape(-1), flat, updates.data[inside])

    return run


def _update(body: CallableSubgraph) -> Update:
    """Return the NumPy function for the body subgraph *body*.

    Raises:
        OperatorError: the body has several operators, or an unsupported one.
    """
    names = [operator.name for operator in body.operators]
    if not names:
        return _replace
    if len(names) > 1 or names[0] not in _UPDATES:
        allowed = ", ".join(sorted(_UPDATES))
        raise OperatorError(f"update computation is {names}, expected none or one of {allowed}")
    return _UPDATES[names[0]]


def _replace(target: Array, places: Array, values: Array) -> None:
    target[places] = values


def _maximum(target: Array, places: Array, values: Array) -> None:
    is_number = values == values  # NaN changes nothing
    np.maximum.at(target, places[is_number], values[is_number])


def _minimum(target: Array, places: Array, values: Array) -> None:
    is_number = values == values
    np.minimum.at(target, places[is_number], values[is_number])


_UPDATES: dict[str, Update] = {
    "STABLEHLO_ADD": np.add.at,
    "STABLEHLO_MAXIMUM": _maximum,
    "STABLEHLO_MINIMUM": _minimum,
    "STABLEHLO_MULTIPLY": np.multiply.at,
}
