"""EMBEDDING_LOOKUP and EMBEDDING_LOOKUP_SPARSE: rows of a table by number."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError
from delegraph.graph.dtypes import BITS, unpack
from delegraph.operators.checks import (
    option,
    require_rank,
    require_same_type,
    require_shape,
    require_type,
    require_zero_points,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import CombinerType, TensorType

Array = NDArray[Any]

_QUANTIZED = {TensorType.UINT8, TensorType.INT8, TensorType.INT4, TensorType.INT2}


class SparseLookupInput(IntEnum):
    """Positions of the inputs of an EMBEDDING_LOOKUP_SPARSE node.

    Source: tflite/kernels/embedding_lookup_sparse.cc.
    """

    IDS = 0
    INDICES = 1
    DENSE_SHAPE = 2
    WEIGHTS = 3
    TABLE = 4


@kernel("EMBEDDING_LOOKUP")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare EMBEDDING_LOOKUP: rows of a table; rows of integers may become floats.

    Source:
        tflite/kernels/embedding_lookup.cc.
    """
    lookup, table, y = tensors_of(context, node, 2)
    _check_table(lookup, table)
    context.resize_tensor(y, (lookup.shape[0], *table.shape[1:]))
    rows = _rows(table, y)

    def run() -> None:
        if table.shape[0]:  # the official kernel writes nothing if there are no rows
            found = rows(_checked(lookup.data, table.shape[0]))
            y.data[...] = found.reshape(y.data.shape)

    return run


@kernel("EMBEDDING_LOOKUP_SPARSE")
def prepare_sparse(context: OpContext, node: Node) -> Eval:
    """Prepare EMBEDDING_LOOKUP_SPARSE: weighted sums of rows of a table.

    The indices of the sparse tensor must be sorted.

    Source:
        tflite/kernels/embedding_lookup_sparse.cc.
    """
    ids, indices, dense_shape, weights, table, y = tensors_of(context, node, len(SparseLookupInput))
    _check_table(ids, table)
    for tensor in (indices, dense_shape):
        require_type(tensor, {TensorType.INT32})
    for tensor in (weights, table, y):
        require_type(tensor, {TensorType.FLOAT32})
    require_rank(indices, 2)
    require_shape(indices, (ids.shape[0], indices.shape[1]))
    require_shape(dense_shape, (indices.shape[1],))
    require_shape(weights, ids.shape)
    context.set_dynamic(y)
    combiner = option(node, "combiner", CombinerType.SUM)

    def run() -> None:
        stack = tuple(dense_shape.data.tolist()[:-1])
        context.resize_tensor(y, (*stack, *table.shape[1:]))
        row = _row_numbers(indices.data[:, :-1], stack)
        size = math.prod(table.shape[1:])
        embeddings = table.data[_checked(ids.data, table.shape[0])].reshape(len(row), size)
        sums = y.data.reshape(math.prod(stack), size)
        sums[...] = 0
        np.add.at(sums, row, embeddings * weights.data[:, None])
        sums /= _divisors(combiner, row, weights.data, len(sums))[:, None]

    return run


def _check_table(lookup: Tensor, table: Tensor) -> None:
    require_rank(lookup, 1)
    require_type(lookup, {TensorType.INT32})
    if len(table.shape) < 2:
        raise OperatorError(f"table has shape {list(table.shape)}, expected 2 dimensions or more")


def _rows(table: Tensor, y: Tensor) -> Callable[[Array], Array]:
    """Return a function that takes row numbers, and returns those rows of *table* in *y*'s type.

    Raises:
        OperatorError: the table's type or quantization does not fit *y*.
    """
    if y.type not in (TensorType.FLOAT32, TensorType.FLOAT16) or table.type == y.type:
        require_same_type(table, y)
        if table.quantization is not None and len(table.quantization.scales) > 1:
            raise OperatorError(f"table has several scales, output {y.name!r} has no floats")
        if table.is_packed and math.prod(table.shape[1:]) * BITS[table.type] % 8:
            raise OperatorError(f"rows of {table.shape[1:]} {table.type.name} end within a byte")
        return lambda i: table.data.reshape(table.shape[0], -1)[i]
    require_type(table, _QUANTIZED)
    require_zero_points(table)
    scales = _scales(table)
    width = math.prod(table.shape[1:])
    stored = _packed_rows(table, width) if table.is_packed else _byte_rows(table, width)

    def dequantized(i: Array) -> Array:
        blocks = stored(i).reshape(*scales[i].shape, width // scales.shape[1])
        return np.asarray((blocks * scales[i][..., None]).astype(y.dtype))

    return dequantized


def _byte_rows(table: Tensor, width: int) -> Callable[[Array], Array]:
    """Return a function from row numbers to these rows of *table*, read as signed bytes.

    A row has *width* bytes.
    """
    return lambda i: table.data.view(np.int8).reshape(-1, width)[i]


def _packed_rows(table: Tensor, width: int) -> Callable[[Array], Array]:
    """Return a function from row numbers to rows of *table*: *width* integers of 2 or 4 bits.

    The official kernel starts each row at a whole byte, even if the previous row ends within that
    byte.
    """
    per_byte = 8 // BITS[table.type]
    size = -(-width // per_byte)  # bytes of a row; the last byte may be shared with the next row

    def rows(i: Array) -> Array:
        starts = i.astype(np.int64) * width // per_byte
        packed = table.data[starts[:, None] + np.arange(size)]
        integers = unpack(packed.reshape(-1), table.type, (len(i), size * per_byte))
        return integers[:, :width]

    return rows


def _scales(table: Tensor) -> NDArray[np.float32]:
    """Return the scales of the blocks in each row of *table*: ``[rows, blocks], float32``.

    Raises:
        OperatorError: scales belong to another dimension, or a row is no multiple of the block
            size.
    """
    rows, quantization = table.shape[0], table.quantization
    if quantization is None:
        return np.zeros((rows, 1), np.float32)
    scales = quantization.scales.astype(np.float32)
    if len(scales) == 1:
        return np.broadcast_to(scales, (rows, 1))
    if quantization.block_size:
        if len(table.shape) != 2 or len(scales) * quantization.block_size != np.prod(table.shape):
            raise OperatorError(
                f"table of shape {list(table.shape)} has {len(scales)} scales for blocks of "
                f"{quantization.block_size}"
            )
    elif quantization.quantized_dimension != 0 or len(scales) != rows:
        raise OperatorError(
            f"table has {len(scales)} scales along dimension {quantization.quantized_dimension}, "
            f"expected {rows} along dimension 0"
        )
    return scales.reshape(rows, -1)


def _checked(numbers: NDArray[np.int32], rows: int) -> NDArray[np.int32]:
    """Return *numbers* after checking that each number is that of a row of the table.

    Raises:
        OperatorError: a number is not in ``range(rows)``.
    """
    outside = numbers[(numbers < 0) | (numbers >= rows)]
    if len(outside):
        raise OperatorError(f"row {outside[0]} is looked up in a table of {rows} rows")
    return numbers


def _row_numbers(indices: NDArray[np.int32], stack: tuple[int, ...]) -> NDArray[np.intp]:
    """Return the number of each row that *indices* name, in row-major order: ``[N]``.

    Args:
        indices: positions of the rows, ``[N, rank], int32``.
        stack: number of rows along each axis.

    Raises:
        OperatorError: an index is out of range.
    """
    if not stack:
        return np.zeros(len(indices), np.intp)
    try:
        return np.asarray(np.ravel_multi_index(tuple(indices.T), stack))
    except ValueError:
        raise OperatorError(f"an index is outside of dense_shape {list(stack)}") from None


def _divisors(
    combiner: int, row: NDArray[np.intp], weights: NDArray[np.float32], rows: int
) -> NDArray[np.float32]:
    """Return the divisor of each sum, ``[rows], float32``; 1 for rows without elements.

    Args:
        combiner: value of ``CombinerType``: how the rows found are combined.
        row: for each element found, the row of the output that it belongs to.
        weights: weight of each element found.
        rows: number of output rows.
    """
    divisors = np.zeros(rows, np.float32)
    if combiner == CombinerType.MEAN:
        np.add.at(divisors, row, weights)
    elif combiner == CombinerType.SQRTN:
        np.add.at(divisors, row, np.square(weights))
        np.sqrt(divisors, out=divisors)
    else:
        divisors[...] = 1
    divisors[~np.isin(np.arange(rows), row)] = 1
    return divisors
