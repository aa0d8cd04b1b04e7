"""Tables of a model file in the schema, except the operators' options.

A list that the file lacks is None here, because the official runtime distinguishes it from an empty
list: an empty ``Buffer.data`` is a constant without bytes.

Source:
    tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from delegraph.schema.enums import (
    BuiltinOperator,
    CustomOptionsFormat,
    DimensionType,
    TensorType,
)
from delegraph.schema.options import BUILTIN_OPTIONS, BUILTIN_OPTIONS_2
from delegraph.schema.table import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    UINT8,
    UINT16,
    Table,
    array,
    boolean,
    child,
    children,
    enum,
    int8,
    int32,
    string,
    uint32,
    uint64,
    union,
    vector,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


class CustomQuantization(Table):
    """Parameters of an experimental quantization, in the producer's format."""

    custom: NDArray[np.uint8] | None = array(0, UINT8, default=None, align=16)


class BlockwiseQuantization(Table):
    """Scales shared by blocks of elements; ``scales`` and ``zero_points`` are tensor indices."""

    scales: int = int32(0, default=0)
    zero_points: int = int32(1, default=0)
    block_size: int = int32(2, default=0)
    block_shape: tuple[int, ...] = vector(3, INT32, default=())


class MultiAxisQuantization(Table):
    """Scales along several axes; ``scales`` and ``zero_points`` are tensor indices."""

    scales: int = int32(0, default=0)
    zero_points: int = int32(1, default=0)
    block_size: int = int32(2, default=0)
    quantized_dimensions: tuple[int, ...] = vector(3, INT32, default=())


QUANTIZATION_DETAILS: dict[int, type[Table]] = {
    1: CustomQuantization,
    2: BlockwiseQuantization,
    3: MultiAxisQuantization,
}
"""Tables by their number in the enumeration ``QuantizationDetails``."""


class QuantizationParameters(Table):
    """Quantization of a tensor; ``details`` replaces the other fields."""

    min: NDArray[np.float32] | None = array(0, FLOAT32, default=None)
    max: NDArray[np.float32] | None = array(1, FLOAT32, default=None)
    scale: NDArray[np.float32] | None = array(2, FLOAT32, default=None)
    zero_point: NDArray[np.int64] | None = array(3, INT64, default=None)
    details: Table | None = union(5, QUANTIZATION_DETAILS, default=None)
    quantized_dimension: int = int32(6, default=0)


class Int32Vector(Table):
    """Indices of a sparse dimension, as int32."""

    values: NDArray[np.int32] | None = array(0, INT32, default=None)


class Uint16Vector(Table):
    """Indices of a sparse dimension, below 65,536."""

    values: NDArray[np.uint16] | None = array(0, UINT16, default=None, align=4)


class Uint8Vector(Table):
    """Indices of a sparse dimension, below 256."""

    values: NDArray[np.uint8] | None = array(0, UINT8, default=None, align=4)


SPARSE_INDEX_VECTOR: dict[int, type[Table]] = {1: Int32Vector, 2: Uint16Vector, 3: Uint8Vector}
"""Tables by their number in the enumeration ``SparseIndexVector``."""


class DimensionMetadata(Table):
    """Storage format of one dimension of a sparse tensor."""

    format: DimensionType = enum(0, default=DimensionType.DENSE)
    dense_size: int = int32(1, default=0)
    array_segments: Table | None = union(3, SPARSE_INDEX_VECTOR, default=None)
    array_indices: Table | None = union(5, SPARSE_INDEX_VECTOR, default=None)


class SparsityParameters(Table):
    """Storage order of a sparse tensor."""

    traversal_order: tuple[int, ...] | None = vector(0, INT32, default=None)
    block_map: tuple[int, ...] | None = vector(1, INT32, default=None)
    dim_metadata: tuple[DimensionMetadata, ...] | None = children(
        2, DimensionMetadata, default=None
    )


class VariantSubType(Table):
    """Type and shape of the value that a VARIANT tensor holds."""

    shape: tuple[int, ...] | None = vector(0, INT32, default=None)
    type: TensorType = enum(1, default=TensorType.FLOAT32)
    has_rank: bool = boolean(2, default=False)


class Tensor(Table):
    """A tensor of a subgraph; ``buffer`` is an index into the model's buffers, 0 for none."""

    shape: tuple[int, ...] | None = vector(0, INT32, default=None)
    type: TensorType = enum(1, default=TensorType.FLOAT32)
    buffer: int = uint32(2, default=0)
    name: str | None = string(3, default=None)
    quantization: QuantizationParameters | None = child(4, QuantizationParameters, default=None)
    is_variable: bool = boolean(5, default=False)
    sparsity: SparsityParameters | None = child(6, SparsityParameters, default=None)
    shape_signature: tuple[int, ...] | None = vector(7, INT32, default=None)
    has_rank: bool = boolean(8, default=False)
    variant_tensors: tuple[VariantSubType, ...] | None = children(9, VariantSubType, default=None)
    external_buffer: int = uint32(10, default=0)


class OperatorCode(Table):
    """An operator type and version; codes below 127 are also in ``deprecated_builtin_code``."""

    deprecated_builtin_code: int = int8(0, default=0)
    custom_code: str | None = string(1, default=None)
    version: int = int32(2, default=1)
    builtin_code: BuiltinOperator = enum(3, default=BuiltinOperator.ADD, dtype=INT32)


class Operator(Table):
    """A node of a subgraph; tensors by index, -1 for an optional input that is absent."""

    opcode_index: int = uint32(0, default=0)
    inputs: tuple[int, ...] | None = vector(1, INT32, default=None)
    outputs: tuple[int, ...] | None = vector(2, INT32, default=None)
    builtin_options: Table | None = union(4, BUILTIN_OPTIONS, default=None)
    custom_options: NDArray[np.uint8] | None = array(5, UINT8, default=None, align=16)
    custom_options_format: CustomOptionsFormat = enum(6, default=CustomOptionsFormat.FLEXBUFFERS)
    mutating_variable_inputs: tuple[bool, ...] | None = vector(7, BOOL, default=None)
    intermediates: tuple[int, ...] | None = vector(8, INT32, default=None)
    large_custom_options_offset: int = uint64(9, default=0)
    large_custom_options_size: int = uint64(10, default=0)
    builtin_options_2: Table | None = union(12, BUILTIN_OPTIONS_2, default=None)
    debug_metadata_index: int = int32(13, default=-1)


class SubGraph(Table):
    """Tensors, and operators in execution order."""

    tensors: tuple[Tensor, ...] | None = children(0, Tensor, default=None)
    inputs: tuple[int, ...] | None = vector(1, INT32, default=None)
    outputs: tuple[int, ...] | None = vector(2, INT32, default=None)
    operators: tuple[Operator, ...] | None = children(3, Operator, default=None)
    name: str | None = string(4, default=None)
    debug_metadata_index: int = int32(5, default=-1)


class Buffer(Table):
    """Bytes of a constant, in ``data`` or, if ``offset`` is > 1, after the flatbuffer."""

    data: NDArray[np.uint8] | None = array(0, UINT8, default=None, align=16)
    offset: int = uint64(1, default=0)
    size: int = uint64(2, default=0)


class ExternalBufferGroup(Table):
    """A file that contains external buffers."""

    name: str | None = string(0, default=None)


class ExternalBuffer(Table):
    """A slice of an external file; tensors refer to it by ``id``."""

    id: int = uint32(0, default=0)
    group: int = uint32(1, default=0)
    offset: int = uint64(2, default=0)
    length: int = uint64(3, default=0)
    packing: str | None = string(4, default=None)


class Metadata(Table):
    """A metadata entry: a name, and the index of the buffer with its content."""

    name: str | None = string(0, default=None)
    buffer: int = uint32(1, default=0)


class TensorMap(Table):
    """A tensor index, with the name of the tensor in a signature."""

    name: str | None = string(0, default=None)
    tensor_index: int = uint32(1, default=0)


class SignatureDef(Table):
    """A signature: a named way to call a subgraph, with names for inputs and outputs."""

    inputs: tuple[TensorMap, ...] | None = children(0, TensorMap, default=None)
    outputs: tuple[TensorMap, ...] | None = children(1, TensorMap, default=None)
    signature_key: str | None = string(2, default=None)
    subgraph_index: int = uint32(4, default=0)


class Model(Table):
    """The root table of a model file."""

    version: int = uint32(0, default=0)
    operator_codes: tuple[OperatorCode, ...] | None = children(1, OperatorCode, default=None)
    subgraphs: tuple[SubGraph, ...] | None = children(2, SubGraph, default=None)
    description: str | None = string(3, default=None)
    buffers: tuple[Buffer, ...] | None = children(4, Buffer, default=None)
    metadata_buffer: tuple[int, ...] | None = vector(5, INT32, default=None)
    metadata: tuple[Metadata, ...] | None = children(6, Metadata, default=None)
    signature_defs: tuple[SignatureDef, ...] | None = children(7, SignatureDef, default=None)
    external_buffer_groups: tuple[ExternalBufferGroup, ...] | None = children(
        8, ExternalBufferGroup, default=None
    )
    external_buffers: tuple[ExternalBuffer, ...] | None = children(9, ExternalBuffer, default=None)


def operator_code(
    builtin: BuiltinOperator, *, version: int = 1, custom_code: str | None = None
) -> OperatorCode:
    """Return an operator code that old and new readers understand.

    Old readers read ``deprecated_builtin_code``, which is 127 for all operators from 127 on.

    Args:
        builtin: number of the operator.
        version: version of the operator.
        custom_code: name of a custom operator; None for other operators.

    >>> operator_code(BuiltinOperator.GELU)
    OperatorCode(deprecated_builtin_code=127, builtin_code=<BuiltinOperator.GELU: 150>)
    """
    placeholder = BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES
    return OperatorCode(
        deprecated_builtin_code=int(min(builtin, placeholder)),
        custom_code=custom_code,
        version=version,
        builtin_code=builtin,
    )


def with_operators(model: Model, change: Callable[[Operator], Operator]) -> Model:
    """Return *model* with each operator replaced by the result of *change*."""
    if model.subgraphs is None:
        return model
    subgraphs = (
        subgraph
        if subgraph.operators is None
        else subgraph.replace(operators=tuple(map(change, subgraph.operators)))
        for subgraph in model.subgraphs
    )
    return model.replace(subgraphs=tuple(subgraphs))
