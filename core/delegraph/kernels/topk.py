"""Kernel of TOPK_V2: the k largest values of each row, and their positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.output_shape import check_type, integers, size_outputs
from delegraph.errors import OperatorError
from delegraph.operators.checks import require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, element_count
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INDICES = {TensorType.INT16, TensorType.INT32}
_TYPES = _INDICES | {TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT64}


@kernel("TOPK_V2")
def prepare_topk(context: OpContext, node: Node) -> Eval:
    """Prepare TOPK_V2: the k largest values of each row, and their positions.

    Equal values are in the order of their positions, NaN last. Types are float32, uint8, int8,
    int16, int32 and int64. k and positions are int16 or int32; a negative k counts as 0.

    Source:
        tflite/kernels/topk_v2.cc.
    """
    x, k_input, values, positions = tensors_of(context, node, 2, 2)
    require_type(x, _TYPES)
    require_type(k_input, _INDICES)
    require_type(positions, _INDICES)
    check_type(values, x)
    if element_count(k_input.shape) != 1 or not x.shape:
        raise OperatorError(
            f"k is {list(k_input.shape)}, expected one element; input {list(x.shape)}"
        )

    def plans() -> tuple[Sequence[Shape], Eval]:
        k, size = max(integers(k_input)[0], 0), x.shape[-1]
        if k > size:
            raise OperatorError(f"k is {k}, expected at most {size}, the last dimension")

        def select() -> None:
            order = _descending(x.data)[..., :k]
            values.data[...] = np.take_along_axis(x.data, order, axis=-1)
            positions.data[...] = order

        return ((*x.shape[:-1], k),) * 2, select

    return size_outputs(context, (values, positions), plans, shape_inputs=(k_input,))


def _descending(x: NDArray[Any]) -> NDArray[np.intp]:
    """Return the positions that sort each row of *x*: descending, NaN last, ties in order."""
    if x.dtype.kind == "f":
        return np.argsort(-x, axis=-1, kind="stable")
    # The least integer has no negative, so sort the reversed row ascending, stably, and reverse it.
    mirrored = np.argsort(x[..., ::-1], axis=-1, kind="stable")
    return np.asarray(x.shape[-1] - 1 - mirrored[..., ::-1])
