"""The immutable, typed content of a model file, before anything runs.

``TensorSpec``, ``OperatorSpec`` and ``SubgraphSpec`` are declarations; their living counterparts
are the ``Tensor`` and ``Node`` of :mod:`delegraph.operators` and the ``Subgraph`` of
:mod:`delegraph.runtime`.

A large model has ten thousands of the first two; they are named tuples because a frozen dataclass
takes five times as long to make. Like the other classes here they are compared by identity, since
arrays have no truth value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from delegraph.lazy_dataclass import dataclass
from delegraph.schema.enums import BuiltinOperator, TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.schema.table import Table


CONTROL_EDGES = "model_control_dependencies"
"""Name of the metadata entry with the order of operators that no tensor shows."""

VALIDATION = "VALIDATION:"
"""How names of subgraphs start that check a model, and that no delegate gets."""


_Record = TypeVar("_Record", bound=type)


def _compared_by_identity(record: _Record) -> _Record:
    """Class decorator of records that hold arrays, whose comparison has no single truth value."""
    for name in ("__eq__", "__ne__", "__hash__"):
        setattr(record, name, getattr(object, name))
    return record


@_compared_by_identity
class Quantization(NamedTuple):
    """How stored integers stand for real numbers: ``real = scale * (q - zero_point)``.

    Attributes:
        scales: ``[K], float32`` (float16 for blockwise); K is 1 per tensor, else one a channel.
        zero_points: ``[K], int32``; empty for blockwise quantization.
        quantized_dimension: axis of the channels; 0 when per tensor.
        block_size: elements that share a scale along the last axis; 0 when not blockwise.
    """

    scales: NDArray[np.floating]
    zero_points: NDArray[np.int32]
    quantized_dimension: int = 0
    block_size: int = 0

    @property
    def scale(self) -> float:
        """The per-tensor scale, or the first scale when the quantization is per channel."""
        return float(self.scales[0])

    @property
    def zero_point(self) -> int:
        """The per-tensor zero point, or the first one when the quantization is per channel."""
        return int(self.zero_points[0]) if len(self.zero_points) else 0


@dataclass(frozen=True, slots=True, eq=False)
class DimensionMetadata:
    """Storage format of one dimension of a sparse tensor.

    Attributes:
        dense_size: length of a dense dimension; 0 for a sparse (CSR) one.
        array_segments: CSR row starts, ``[rows + 1], int32``; None for a dense dimension.
        array_indices: CSR column indices, ``[stored], int32``; None for a dense dimension.
    """

    dense_size: int
    array_segments: NDArray[np.int32] | None = None
    array_indices: NDArray[np.int32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Sparsity:
    """Storage order of a sparse constant. Source: ``SparsityParameters`` of the schema.

    Attributes:
        traversal_order: dimensions, blocks after the others, in the order in which they are stored.
        block_map: dimension that each block divides; None where the file says nothing of blocks.
        dim_metadata: how each dimension is stored, in traversal order.
    """

    traversal_order: tuple[int, ...]
    block_map: tuple[int, ...] | None
    dim_metadata: tuple[DimensionMetadata, ...]


@_compared_by_identity
class TensorSpec(NamedTuple):
    """Declaration of one tensor in the model file.

    Attributes:
        index: position in its subgraph's tensor list.
        name: may be empty and need not be unique.
        type: element type.
        shape: declared dimensions; unknown ones are given as 1 here.
        shape_signature: the same with -1 for each unknown dimension; equals ``shape`` when the
            file has none.
        data: the constant's raw bytes, ``[bytes], uint8``, a read-only view of the file; None when
            the tensor is computed.
        is_variable: keeps its value between invokes.
        quantization: None for tensors without scales.
        sparsity: None for dense tensors.
        has_rank: False with an empty shape means that the rank is unknown.
        buffer: index in the model's buffer list.
        external_buffer: id of an external buffer group entry; 0 for none.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index, which is not needed here
    name: str
    type: TensorType
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    data: NDArray[np.uint8] | None = None
    is_variable: bool = False
    quantization: Quantization | None = None
    sparsity: Sparsity | None = None
    has_rank: bool = False
    buffer: int = 0
    external_buffer: int = 0


@_compared_by_identity
class OperatorSpec(NamedTuple):
    """Declaration of one node in the model file.

    Attributes:
        index: position in its subgraph's operator list.
        name: ``CONV_2D``, or the custom code of a custom operator.
        builtin_code: ``BuiltinOperator.CUSTOM`` for custom operators.
        version: operator version, from 1.
        inputs: tensor indices; -1 for an optional input that is absent.
        outputs: tensor indices.
        intermediates: tensor indices that carry quantization of inner values (LSTM).
        options: typed options named as in the schema (``Conv2DOptions``), None without any.
        custom_options: raw bytes of a custom operator, ``[bytes], uint8``, a view; None if absent.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index, which is not needed here
    name: str
    builtin_code: BuiltinOperator
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...] = ()
    options: Table | None = None
    custom_options: NDArray[np.uint8] | None = None

    @property
    def is_custom(self) -> bool:
        """Whether this is a custom operator."""
        return self.builtin_code == BuiltinOperator.CUSTOM


@dataclass(frozen=True, slots=True, eq=False)
class SubgraphSpec:
    """A subgraph: tensors, and operators in topological order."""

    index: int
    name: str
    tensors: tuple[TensorSpec, ...]
    operators: tuple[OperatorSpec, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def is_validation(self) -> bool:
        """Whether it has a validation name, so that no delegate is applied to it."""
        return self.name.startswith(VALIDATION)


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """A named way to call a subgraph, with a name for each input and output tensor."""

    key: str
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    subgraph_index: int


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The content of one model file. Load one with :func:`delegraph.graph.load_model`.

    Attributes:
        content: the mapped file, ``[bytes], uint8``; every constant is a view into it.
        metadata: entry name to raw bytes.
    """

    version: int
    description: str
    subgraphs: tuple[SubgraphSpec, ...]
    signatures: tuple[Signature, ...]
    metadata: Mapping[str, NDArray[np.uint8]]
    content: NDArray[np.uint8]

    def __repr__(self) -> str:
        operators = sum(len(subgraph.operators) for subgraph in self.subgraphs)
        counts = {
            "subgraph": len(self.subgraphs),
            "operator": operators,
            "signature": len(self.signatures),
        }
        told = [f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items()]
        return f"<Model of {', '.join(told)}, {len(self.content):,} bytes>"
