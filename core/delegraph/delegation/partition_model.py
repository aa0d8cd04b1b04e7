"""A partition as a ``.tflite`` file of its own, for compilers that read TFLite."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import DelegateError
from delegraph.graph.model import DimensionMetadata, Quantization, Sparsity
from delegraph.graph.strings import encode_strings
from delegraph.operators.registration import Node, Registration
from delegraph.operators.tensor import Tensor
from delegraph.schema import tables
from delegraph.schema.enums import BuiltinOperator, DimensionType, TensorType
from delegraph.schema.options import options_field
from delegraph.schema.table import Table
from delegraph.schema.writer import write_model


class PartitionedGraph(Protocol):
    """The graph that a partition is of; a ``DelegateContext`` is one."""

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the subgraph, by index."""

    def get_node_and_registration(self, node_index: int) -> tuple[Node, Registration]:
        """Return a node and its implementation."""


class Partition(Protocol):
    """Nodes of the graph and their border; ``DelegateParams`` are one."""

    @property
    def nodes_to_replace(self) -> Sequence[int]:
        """Node indices in execution order."""

    @property
    def input_tensors(self) -> Sequence[int]:
        """Tensor indices read from outside."""

    @property
    def output_tensors(self) -> Sequence[int]:
        """Tensor indices that others read."""


_HANDLE_TYPES = (TensorType.RESOURCE, TensorType.VARIANT)  # mean nothing outside of their process


@dataclass(frozen=True, slots=True)
class PartitionModel:
    """A partition as a stand-alone ``.tflite`` file, and where its parts are in the graph.

    The same partition gives the same bytes in every process and in both hosts.

    Attributes:
        content: the file. Its first subgraph is the partition; tensors have the shapes they have
            now, and their names, types, quantization and sparsity; operators have their versions,
            options and custom options. Variables keep a state of their own in it.
        inputs: for each input of the file the graph's tensor: the partition's ``input_tensors``
            that are neither constant nor variable, in their order.
        outputs: for each output of the file the graph's tensor: the ``output_tensors``.
        nodes: for each operator of the file the graph's node.
        tensors: for each tensor of the file the graph's; -1 for those that the graph has not as
            tensors, such as the scales of blockwise quantization.
    """

    content: bytes = field(repr=False)
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    nodes: tuple[int, ...]
    tensors: tuple[int, ...] = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of ``content``, in hexadecimal digits: what a compiled partition is kept under.

        It depends on shapes, constants, options and tensor names, not on where the partition lies
        in the graph, nor on process, host or platform.
        """
        return hashlib.sha256(self.content).hexdigest()


def partition_model(graph: PartitionedGraph, partition: Partition) -> PartitionModel:
    """Return the partition as a ``.tflite`` file, with the maps to the graph.

    Raises:
        DelegateError: a node cannot stand alone, as it calls another subgraph, was replaced by a
            delegate, or reads a resource that is made outside.
    """
    return _PartitionRecords(graph).model(partition)


class _PartitionRecords:
    """Collects the records of one partition, numbering its tensors, codes and buffers afresh."""

    def __init__(self, graph: PartitionedGraph) -> None:
        self._graph = graph
        self._tensors: list[tables.Tensor] = []
        self._index: dict[int, int] = {-1: -1}  # tensor index in the graph to that in the partition
        self._codes: dict[tables.OperatorCode, int] = {}
        self._buffers = [tables.Buffer()]  # the first one is empty by convention
        self._buffer_of: dict[tuple[int, int], int] = {}  # by address and size

    def model(self, partition: Partition) -> PartitionModel:
        """Return the whole file and the maps."""
        inputs = tuple(i for i in partition.input_tensors if self._is_input(self._graph.tensors[i]))
        operators = [
            self._operator(*self._graph.get_node_and_registration(index))
            for index in partition.nodes_to_replace
        ]
        subgraph = tables.SubGraph(
            inputs=self._moved(inputs),
            outputs=self._moved(partition.output_tensors),
            operators=tuple(operators),
            name="main",
        )
        model = tables.Model(
            version=3,
            description="partition of a larger model",
            operator_codes=tuple(self._codes),
            subgraphs=(subgraph.replace(tensors=tuple(self._tensors)),),
            buffers=tuple(self._buffers),
        )
        graph_index = {own: index for index, own in self._index.items()}
        return PartitionModel(
            write_model(model),
            inputs,
            tuple(partition.output_tensors),
            tuple(partition.nodes_to_replace),
            tuple(graph_index.get(own, -1) for own in range(len(self._tensors))),
        )

    def _is_input(self, tensor: Tensor) -> bool:
        """Return whether the tensor's value has to be passed in."""
        if tensor.is_constant or tensor.is_variable:
            return False
        if tensor.type in _HANDLE_TYPES:
            raise DelegateError(
                f"the partition reads {tensor!r}, which is made outside of it; a model of its own "
                "cannot be given one"
            )
        return True

    def _operator(self, node: Node, registration: Registration) -> tables.Operator:
        _require_independent(node, registration)
        code = tables.operator_code(
            registration.builtin_code,
            version=node.version,
            custom_code=registration.custom_name or None,
        )
        return tables.Operator(
            opcode_index=self._codes.setdefault(code, len(self._codes)),
            inputs=self._moved(node.inputs),
            outputs=self._moved(node.outputs),
            intermediates=self._moved(node.intermediates) or None,
            custom_options=_bytes(node.custom_options) if node.custom_options else None,
            **options_field(node.options),
        )

    def _moved(self, indices: Sequence[int]) -> tuple[int, ...]:
        """Return the partition's indices of tensors of the graph."""
        for index in indices:
            if index not in self._index:
                record = self._tensor(self._graph.tensors[index])
                self._index[index] = self._add(record)
        return tuple(self._index[index] for index in indices)

    def _add(self, record: tables.Tensor) -> int:
        self._tensors.append(record)
        return len(self._tensors) - 1

    def _tensor(self, tensor: Tensor) -> tables.Tensor:
        has_open_dimensions = -1 in tensor.shape_signature
        return tables.Tensor(
            shape=tensor.shape,
            shape_signature=tensor.shape_signature if has_open_dimensions else None,
            type=tensor.type,
            buffer=self._buffer(_stored(tensor)) if tensor.is_constant else 0,
            name=tensor.name,
            quantization=self._quantization(tensor),
            is_variable=tensor.is_variable,
            sparsity=None if tensor.sparsity is None else _sparsity(tensor.sparsity),
        )

    def _buffer(self, content: NDArray[np.uint8]) -> int:
        """Return the index of the buffer with *content*; tensors of the same memory share one."""
        key = content.ctypes.data, content.nbytes
        if key not in self._buffer_of:
            self._buffer_of[key] = len(self._buffers)
            self._buffers.append(tables.Buffer(data=content))
        return self._buffer_of[key]

    def _quantization(self, tensor: Tensor) -> tables.QuantizationParameters | None:
        quantization = tensor.quantization
        if quantization is None:
            return None
        if quantization.block_size:
            return self._blockwise(tensor, quantization)
        return tables.QuantizationParameters(
            scale=quantization.scales.astype(np.float32),
            zero_point=quantization.zero_points.astype(np.int64),
            quantized_dimension=quantization.quantized_dimension,
        )

    def _blockwise(
        self, tensor: Tensor, quantization: Quantization
    ) -> tables.QuantizationParameters:
        """Return blockwise quantization; its scales become another constant of the partition."""
        scales = quantization.scales
        index = self._add(
            tables.Tensor(
                shape=(len(scales),),
                type=TensorType[scales.dtype.name.upper()],
                buffer=self._buffer(_bytes(scales)),
                name=f"{tensor.name}/scales",
            )
        )
        details = tables.BlockwiseQuantization(
            scales=index, zero_points=-1, block_size=quantization.block_size
        )
        return tables.QuantizationParameters(
            details=details, quantized_dimension=quantization.quantized_dimension
        )


def _require_independent(node: Node, registration: Registration) -> None:
    where = f"node {node.index} ({registration.name})"
    if registration.builtin_code is BuiltinOperator.DELEGATE:
        raise DelegateError(f"{where} is a delegate's own and has no place in a model")
    if isinstance(node.options, Table):
        for field in node.options.FIELDS:
            if field.name.endswith(("subgraph_index", "subgraph_indices")):
                raise DelegateError(f"{where} calls another subgraph; a partition has only one")


def _stored(tensor: Tensor) -> NDArray[np.uint8]:
    """Return a constant as a file stores it, ``[bytes], uint8``."""
    return encode_strings(tensor.data) if tensor.type is TensorType.STRING else _bytes(tensor.data)


def _bytes(content: NDArray[Any] | bytes) -> NDArray[np.uint8]:
    if isinstance(content, bytes):
        return np.frombuffer(content, np.uint8)
    return np.ascontiguousarray(content).reshape(-1).view(np.uint8)


def _sparsity(sparsity: Sparsity) -> tables.SparsityParameters:
    return tables.SparsityParameters(
        traversal_order=sparsity.traversal_order,
        block_map=sparsity.block_map or None,
        dim_metadata=tuple(map(_dimension, sparsity.dim_metadata)),
    )


def _dimension(dimension: DimensionMetadata) -> tables.DimensionMetadata:
    segments, indices = dimension.array_segments, dimension.array_indices
    if segments is None or indices is None:
        return tables.DimensionMetadata(dense_size=dimension.dense_size)
    return tables.DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=tables.Int32Vector(values=segments),
        array_indices=tables.Int32Vector(values=indices),
    )
