"""Kernel of DYNAMIC_UPDATE_SLICE: overwrites a block of a tensor at given start indices."""

from __future__ import annotations

from delegraph.arithmetic.elements import forward, values_of
from delegraph.arithmetic.output_shape import check_type, integers, size_output
from delegraph.errors import OperatorError
from delegraph.graph.dtypes import pack
from delegraph.operators.checks import adopt_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, InPlace, Node, OpContext
from delegraph.operators.tensor import Shape, element_count
from delegraph.schema.enums import TensorType


@kernel("DYNAMIC_UPDATE_SLICE", inplace=InPlace.INPUT_0)
def prepare_dynamic_update_slice(context: OpContext, node: Node) -> Eval:
    """Prepare DYNAMIC_UPDATE_SLICE: input 0 with a block replaced by input 1.

    Input 2 has the start of the block, which is moved so that the block lies inside the tensor.

    Source:
        tflite/kernels/dynamic_update_slice.cc.
    """
    x, update, starts, y = tensors_of(context, node, 3)
    if x.type is TensorType.STRING:
        raise OperatorError("operand is STRING, expected numbers")
    adopt_type(y, x.type)
    check_type(update, x, "update")
    if starts.type not in (TensorType.INT32, TensorType.INT64):
        raise OperatorError(f"start indices are {starts.type.name}, expected INT32 or INT64")
    rank = len(x.shape)
    if len(update.shape) != rank or element_count(starts.shape) != rank:
        raise OperatorError(
            f"update {list(update.shape)} and {element_count(starts.shape)} start indices "
            f"do not fit an operand of rank {rank}"
        )
    room = [size - part for size, part in zip(x.shape, update.shape, strict=True)]
    if min(room, default=0) < 0:
        raise OperatorError(f"update {list(update.shape)} is larger than {list(x.shape)}")

    def plan() -> tuple[Shape, Eval]:
        copy = forward(x, y)

        def replace() -> None:
            copy()
            values = values_of(y)
            places = zip(integers(starts), room, update.shape, strict=True)
            begins = [(max(0, min(start, last)), size) for start, last, size in places]
            block = tuple(slice(begin, begin + size) for begin, size in begins)
            values[block] = values_of(update)
            if y.is_packed:
                y.data[...] = pack(values, y.type)

        return x.shape, replace

    return size_output(context, y, plan, packed=True)
