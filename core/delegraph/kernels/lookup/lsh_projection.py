"""LSH_PROJECTION: hashes inputs to bits; similar inputs share many bits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from delegraph.arithmetic.farmhash import fingerprint64
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    option,
    require_counts,
    require_rank,
    require_shape,
    require_type,
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
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import LSHProjectionType, TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel("LSH_PROJECTION")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare LSH_PROJECTION: one bit for each seed, the sign of the sum of the rows' hashes.

    For each seed, the hashes of all rows, perhaps weighted, are summed. Dense outputs have a number
    for each bit. Sparse outputs have a number for each row of seeds, made from the row's bits and
    index.

    Source:
        tflite/kernels/lsh_projection.cc.
    """
    require_counts(node, (2, 3))
    seeds, x = input_tensor(context, node, 0), input_tensor(context, node, 1)
    weight, y = optional_input(context, node, 2), output_tensor(context, node)
    kind = option(node, "type", LSHProjectionType.UNKNOWN)
    _check(seeds, x, weight, y, kind)
    hashes, bits = seeds.shape
    is_dense = kind == LSHProjectionType.DENSE
    context.resize_tensor(y, (hashes * bits,) if is_dense else (hashes,))

    def run() -> None:
        signs = _signs(seeds.data, x.data, None if weight is None else weight.data)
        if is_dense:
            y.data[...] = signs
            return
        places = np.left_shift(1, np.arange(bits - 1, -1, -1, dtype=np.int64))
        rows = np.arange(hashes) << (bits & 31)  # the processor cannot shift by 32 bits
        numbers = signs.reshape(hashes, bits) @ places + rows
        y.data[...] = numbers.astype(np.uint32).view(np.int32)  # 32 bits wrap

    return run


def _check(seeds: Tensor, x: Tensor, weight: Tensor | None, y: Tensor, kind: int) -> None:
    require_type(seeds, {TensorType.FLOAT32})
    require_type(y, {TensorType.INT32})
    require_rank(seeds, 2)
    if seeds.shape[1] > 32:
        raise OperatorError(f"{seeds.shape[1]} bits a hash, expected at most 32")
    if not x.shape or not x.shape[0]:
        raise OperatorError(f"input has shape {list(x.shape)}, expected a row or more")
    if x.is_packed or x.type in (TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT):
        raise OperatorError(f"input has type {x.type.name}, expected numbers of whole bytes")
    if weight is not None:
        require_type(weight, {TensorType.FLOAT32})
        require_shape(weight, x.shape[:1])
    if kind not in (LSHProjectionType.SPARSE, LSHProjectionType.DENSE):
        raise OperatorError(f"projection type is {kind}, expected SPARSE or DENSE")


def _signs(
    seeds: NDArray[np.float32], x: NDArray[np.generic], weight: NDArray[np.float32] | None
) -> NDArray[np.int64]:
    """Return 1 for each seed whose sum of row hashes is positive, else 0: ``[seeds], int64``.

    *x* has the rows to hash; *weight*, if given, has a factor for each row.
    """
    size = x.dtype.itemsize * math.prod(x.shape[1:])
    rows = np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(len(x), size)
    prefix = np.ascontiguousarray(seeds).reshape(-1, 1).view(np.uint8)  # [seeds, 4]
    keys = np.concatenate(
        [np.repeat(prefix, len(rows), axis=0), np.tile(rows, (len(prefix), 1))], axis=1
    )
    values = fingerprint64(keys).view(np.int64).astype(np.float64).reshape(len(prefix), len(rows))
    if weight is not None:
        values = values * weight
    # The sum of a whole row at a time would be rounded in another order.
    return (np.cumsum(values, axis=1)[:, -1] > 0).astype(np.int64)
