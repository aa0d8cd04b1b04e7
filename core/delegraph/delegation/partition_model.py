"""Converts a partition to a separate ``.tflite`` file, for compilers that read TFLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError, DelegateError
from delegraph.graph.calls import with_calls
from delegraph.graph.model import Quantization
from delegraph.graph.strings import encode_strings
from delegraph.lazy_dataclass import dataclass, field
from delegraph.operators.registration import Node, Registration
from delegraph.operators.tensor import Tensor
from delegraph.schema import tables
from delegraph.schema.enums import BuiltinOperator, DimensionType, TensorType
from delegraph.schema.options import options_field
from delegraph.schema.table import Table

if TYPE_CHECKING:
    from delegraph.delegation.engine_operators import EngineOperator
    from delegraph.delegation.partitioned_graph import Partition, PartitionedGraph
    from delegraph.graph.model import SubgraphSpec
    from delegraph.graph.sparsity import DimensionMetadata, Sparsity


_HANDLE_TYPES = (TensorType.RESOURCE, TensorType.VARIANT)  # meaningless in other processes


@dataclass(frozen=True, slots=True)
class PartitionModel:
    """A partition as a ``.tflite`` file, with the graph's index of each tensor and node.

    The same partition gives the same bytes in every process and in both hosts.

    Attributes:
        content: bytes of the file. Its first subgraph is the partition, with the present shapes,
            types, quantization and sparsity of tensors. A number is added to a name that is empty
            or not unique. Operators have their versions, options and custom options. Variables of
            the file are not those of the graph. Subgraphs that the operators call follow, with
            declared shapes, in which -1 becomes 1, and with the model's operators, not the delegate
            nodes that replaced them.
        inputs: graph's tensor index for each input of the file: the partition's ``input_tensors``
            that are neither constant nor variable, in the same order.
        outputs: graph's tensor index for each output of the file: the ``output_tensors``.
        nodes: graph's node index for each operator of the file's first subgraph.
        tensors: graph's tensor index for each tensor of the file's first subgraph; -1 for a tensor
            that the graph lacks, such as the scales of blockwise quantization.
        called: model's subgraph index for each later subgraph of the file; the operators call these
            subgraphs, directly or indirectly.
    """

    content: bytes = field(repr=False)
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    nodes: tuple[int, ...]
    tensors: tuple[int, ...] = field(repr=False)
    called: tuple[int, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 of ``content`` in hexadecimal digits; the cache's key for a compiled partition.

        It depends on shapes, constants, options, tensor names and called subgraphs. It does not
        depend on the partition's position in the graph, nor on process, host or platform.
        """
        import hashlib  # lazy import: it takes milliseconds, and few partitions are compiled

        return hashlib.sha256(self.content).hexdigest()

    def graph(self) -> SubgraphSpec:
        """Return the partition's operators and tensors, for engines that do not read the file."""
        from delegraph.graph.loader import parse_model  # here: many engines read the file

        return parse_model(self.content).subgraphs[0]

    def operators(self, layout: Literal["NHWC", "NCHW"] = "NHWC") -> list[EngineOperator]:
        """Return the partition's operators in a simple form, for engines that take them one by one.

        - Fused activations are operators of their own: RELU, RELU6, RELU_N1_TO_1 or TANH.
        - Convolutions and pools have their windows, with the zeros around the input.
        - FULLY_CONNECTED multiplies matrices, and RESHAPE has the shape of its output as a
          constant: ``INT32``. SOFTMAX of floats has the factor 1, after a MUL.
        - With *layout* ``NCHW``, CONV_2D, DEPTHWISE_CONV_2D and pools compute in NCHW. Weights have
          the axes output, input, height, width. TRANSPOSE stands where the layout changes; between
          such operators, element-wise ones compute in NCHW, too. All others have TFLite's layout.
        """
        from delegraph.delegation.engine_operators import engine_operators  # here: few engines ask

        return engine_operators(self.graph(), layout)


def partition_model(graph: PartitionedGraph, partition: Partition) -> PartitionModel:
    """Return the partition as a ``.tflite`` file, with the graph's index of each tensor and node.

    Raises:
        DelegateError: a node cannot be in a separate file: a delegate has replaced it, it reads a
            resource that is created outside of the partition, or it calls a subgraph that the host
            does not show.
    """
    from delegraph.schema.writer import write_model  # lazy import: few partitions become a file

    file = _FileRecords(graph)
    main = _SubgraphRecords(graph, file, has_declared_shapes=False)
    inputs = tuple(i for i in partition.input_tensors if _is_input(graph.tensors[i]))
    record = main.subgraph(inputs, partition.output_tensors, partition.nodes_to_replace, "main")
    content = write_model(file.model(record))
    return PartitionModel(
        content,
        inputs,
        tuple(partition.output_tensors),
        tuple(partition.nodes_to_replace),
        main.graph_indices(),
        file.called,
    )


def _is_input(tensor: Tensor) -> bool:
    """Whether the tensor's value must be passed in: it is neither constant nor variable."""
    if tensor.is_constant or tensor.is_variable:
        return False
    if tensor.type in _HANDLE_TYPES:
        raise DelegateError(
            f"the partition reads {tensor!r}, which is computed outside of it, so the partition "
            "cannot become a separate model"
        )
    return True


class _FileRecords:
    """Records that all subgraphs of the new file share: operator codes and buffers."""

    def __init__(self, graph: PartitionedGraph) -> None:
        self._graph = graph
        self._codes: dict[tables.OperatorCode, int] = {}
        self._buffers = [tables.Buffer()]  # the first one is empty by convention
        self._buffer_of: dict[tuple[int, int], int] = {}  # by address and size
        self._numbers: dict[int, int] = {}  # subgraph index in the model to that in the file

    @property
    def called(self) -> tuple[int, ...]:
        """Index in the original model of each subgraph of the file except the first."""
        return tuple(self._numbers)

    def model(self, main: tables.SubGraph) -> tables.Model:
        """Return the record of a model with the subgraph *main* and all subgraphs it calls."""
        subgraphs = [main]
        while len(subgraphs) <= len(self._numbers):  # each may call more of them
            subgraphs.append(self._called_subgraph(self.called[len(subgraphs) - 1]))
        return tables.Model(
            version=3,
            description="partition of a larger model",
            operator_codes=tuple(self._codes),
            subgraphs=tuple(subgraphs),
            buffers=tuple(self._buffers),
        )

    def _called_subgraph(self, index: int) -> tables.SubGraph:
        try:
            graph = self._graph.acquire_subgraph_context(index)
        except ArgumentError as error:
            raise DelegateError(f"a node of the partition calls a subgraph: {error}") from error
        records = _SubgraphRecords(graph, self, has_declared_shapes=True)
        name = self._graph.subgraph_names[index]
        return records.subgraph(graph.inputs, graph.outputs, _model_nodes(graph), name)

    def subgraph_number(self, index: int) -> int:
        """Return the index in the file of the model's subgraph *index*; add it if missing."""
        return self._numbers.setdefault(index, len(self._numbers) + 1)

    def code(self, code: tables.OperatorCode) -> int:
        """Return the index in the file of an operator code; add the code if missing."""
        return self._codes.setdefault(code, len(self._codes))

    def buffer(self, content: NDArray[np.uint8]) -> int:
        """Return the index of the buffer with *content*; equal memory gives the same index."""
        key = content.ctypes.data, content.nbytes
        if key not in self._buffer_of:
            self._buffer_of[key] = len(self._buffers)
            self._buffers.append(tables.Buffer(data=content))
        return self._buffer_of[key]


class _SubgraphRecords:
    """Collects the records of one subgraph of the file, with new tensor numbers.

    Args:
        graph: the model's subgraph to which the nodes belong.
        file: records that all subgraphs of the file share.
        has_declared_shapes: whether tensors get their declared shapes; otherwise they get their
            present shapes.
    """

    def __init__(
        self, graph: PartitionedGraph, file: _FileRecords, *, has_declared_shapes: bool
    ) -> None:
        self._graph = graph
        self._file = file
        self._has_declared_shapes = has_declared_shapes
        self._tensors: list[tables.Tensor] = []
        self._index: dict[int, int] = {-1: -1}  # tensor index in the graph to that in the file
        self._names: dict[str, int] = {}  # how many tensors have asked for a name

    def subgraph(
        self, inputs: Sequence[int], outputs: Sequence[int], nodes: Sequence[int], name: str
    ) -> tables.SubGraph:
        """Return the record of a subgraph with *nodes*, *inputs* and *outputs*."""
        operators = [
            self._operator(*self._graph.get_node_and_registration(index)) for index in nodes
        ]
        return tables.SubGraph(
            inputs=self._moved(inputs),
            outputs=self._moved(outputs),
            operators=tuple(operators),
            name=name,
            tensors=tuple(self._tensors),
        )

    def graph_indices(self) -> tuple[int, ...]:
        """Index in the graph of each tensor in the file; -1 for a tensor that only the file has."""
        graph_index = {own: index for index, own in self._index.items()}
        return tuple(graph_index.get(own, -1) for own in range(len(self._tensors)))

    def _operator(self, node: Node, registration: Registration) -> tables.Operator:
        if registration.builtin_code is BuiltinOperator.DELEGATE:
            raise DelegateError(
                f"node {node.index} ({registration.name}) is a delegate's own and has no place in "
                "a model"
            )
        code = tables.operator_code(
            registration.builtin_code,
            version=node.version,
            custom_code=registration.custom_name or None,
        )
        options = node.options
        if isinstance(options, Table):
            options = with_calls(options, self._file.subgraph_number)
        return tables.Operator(
            opcode_index=self._file.code(code),
            inputs=self._moved(node.inputs),
            outputs=self._moved(node.outputs),
            intermediates=self._moved(node.intermediates) or None,
            custom_options=_bytes(node.custom_options) if node.custom_options else None,
            **options_field(options),
        )

    def _moved(self, indices: Sequence[int]) -> tuple[int, ...]:
        """Convert *indices* of tensors in the graph to indices in the new file."""
        for index in indices:
            if index not in self._index:
                record = self._tensor(self._graph.tensors[index])
                self._index[index] = self._add(record)
        return tuple(self._index[index] for index in indices)

    def _add(self, record: tables.Tensor) -> int:
        self._tensors.append(record)
        return len(self._tensors) - 1

    def _unique_name(self, name: str) -> str:
        """Return a tensor name that is not used yet, since compilers identify tensors by name."""
        unique = name
        while unique in self._names:
            self._names[name] += 1
            unique = f"{name}_{self._names[name]}"
        self._names[unique] = 0
        return unique

    def _tensor(self, tensor: Tensor) -> tables.Tensor:
        has_open_dimensions = -1 in tensor.shape_signature
        return tables.Tensor(
            shape=self._shape(tensor),
            shape_signature=tensor.shape_signature if has_open_dimensions else None,
            type=tensor.type,
            buffer=self._file.buffer(_stored(tensor)) if tensor.is_constant else 0,
            name=self._unique_name(tensor.name or "tensor"),
            quantization=self._quantization(tensor),
            is_variable=tensor.is_variable,
            sparsity=None if tensor.sparsity is None else _sparsity(tensor.sparsity),
        )

    def _shape(self, tensor: Tensor) -> tuple[int, ...]:
        """Return the shape to write for a tensor: the present shape, or the declared one."""
        if not self._has_declared_shapes or tensor.is_constant:
            return tensor.shape
        return tuple(1 if size < 0 else size for size in tensor.shape_signature)

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
        """Return the blockwise *quantization* of *tensor*; the scales become one more constant."""
        scales = quantization.scales
        index = self._add(
            tables.Tensor(
                shape=(len(scales),),
                type=TensorType[scales.dtype.name.upper()],
                buffer=self._file.buffer(_bytes(scales)),
                name=self._unique_name(f"{tensor.name}/scales"),
            )
        )
        details = tables.BlockwiseQuantization(
            scales=index, zero_points=-1, block_size=quantization.block_size
        )
        return tables.QuantizationParameters(
            details=details, quantized_dimension=quantization.quantized_dimension
        )


def _model_nodes(graph: PartitionedGraph) -> list[int]:
    """Return the indices of a subgraph's own nodes, replaced ones included."""
    waiting, found = list(graph.get_execution_plan()), []
    while waiting:
        index = waiting.pop()
        node, _ = graph.get_node_and_registration(index)
        taken = getattr(node.options, "nodes_to_replace", None)
        if taken is None:
            found.append(index)
        else:
            waiting += taken
    return sorted(found)


def _stored(tensor: Tensor) -> NDArray[np.uint8]:
    """Return the value of the constant *tensor* in the file format, ``[bytes], uint8``."""
    return encode_strings(tensor.data) if tensor.type is TensorType.STRING else _bytes(tensor.data)


def _bytes(content: NDArray[Any] | bytes) -> NDArray[np.uint8]:
    if isinstance(content, bytes):
        return np.frombuffer(content, np.uint8)
    return np.ascontiguousarray(content).reshape(-1).view(np.uint8)


def _sparsity(sparsity: Sparsity) -> tables.SparsityParameters:
    return tables.SparsityParameters(
        traversal_order=sparsity.traversal_order,
        block_map=sparsity.block_map,
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
