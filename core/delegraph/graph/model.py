"""The immutable, typed content of a model file, before anything runs.

``TensorSpec``, ``OperatorSpec`` and ``SubgraphSpec`` are declarations. At run time they correspond
to ``Tensor`` and ``Node`` of :mod:`delegraph.operators` and ``Subgraph`` of
:mod:`delegraph.runtime`.

A large model has tens of thousands of tensors and operators. Their specs are named tuples, because
a frozen dataclass takes five times as long to create. All classes here are compared by identity,
since comparing arrays gives arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import compress, count
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import numpy as np

from delegraph.errors import ArgumentError, MalformedModelError, OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES, bits_of, stored_values
from delegraph.lazy_dataclass import NamedTuple, dataclass, field
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.graph.model_entries import EntryPlaces
    from delegraph.graph.sparsity import Sparsity
    from delegraph.schema.enums import BuiltinOperator
    from delegraph.schema.table import Table


CONTROL_EDGES = "model_control_dependencies"
"""Name of the metadata entry with the control edges of operators."""

VALIDATION = "VALIDATION:"
"""Prefix of the names of subgraphs that check a model; delegates cannot claim their nodes."""


_Record = TypeVar("_Record", bound=type)


def _compared_by_identity(record: _Record) -> _Record:
    """Class decorator: two records are equal only if they are the same object.

    Records with arrays cannot be compared by value, because a comparison of arrays is an array.
    """
    for name in ("__eq__", "__ne__", "__hash__"):
        setattr(record, name, getattr(object, name))
    return record


@_compared_by_identity
class Quantization(NamedTuple):
    """Quantization of a tensor: ``real = scale * (q - zero_point)`` for stored integers q.

    Attributes:
        scales: ``[K], float32`` (float16 for blockwise quantization); K is 1, or the number of
            channels.
        zero_points: ``[K], int32``; empty for blockwise quantization.
        quantized_dimension: axis of the channels; 0 if there is one scale for the tensor.
        block_size: number of elements along the last axis that share a scale; 0 if the quantization
            is not blockwise.
    """

    scales: NDArray[np.floating]
    zero_points: NDArray[np.int32]
    quantized_dimension: int = 0
    block_size: int = 0

    @property
    def scale(self) -> float:
        """The per-tensor scale, or the first channel's if the quantization is per channel."""
        return float(self.scales[0])

    @property
    def zero_point(self) -> int:
        """The per-tensor zero point, or the first channel's if the quantization is per channel."""
        return int(self.zero_points[0]) if len(self.zero_points) else 0


@_compared_by_identity
class TensorSpec(NamedTuple):
    """Declaration of one tensor in the model file.

    Attributes:
        index: position in the subgraph's tensor list.
        name: name of the tensor; may be empty, and need not be unique.
        type: element type.
        shape: declared dimensions; unknown dimensions are 1.
        shape_signature: declared dimensions, with -1 for each unknown dimension; equals ``shape``
            if the file has no signature.
        data: raw bytes of a constant, ``[bytes], uint8``, a read-only view of its file; None for
            other tensors.
        is_variable: whether the tensor keeps its value between invokes.
        quantization: scales and zero points; None if there are none.
        sparsity: storage order of a sparse constant; None for dense tensors.
        has_rank: whether the rank is known; if not, ``shape`` is empty.
        buffer: index in the model's buffer list.
        external_buffer: id of the external buffer with ``data``; 0 for none.
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

    @property
    def is_constant(self) -> bool:
        """Whether the tensor's value is in the file."""
        return self.data is not None

    def array(self) -> NDArray[Any]:
        """Values of the constant: ``shape``, of the dtype in ``NUMPY_DTYPES``, read-only.

        The array is a view of :attr:`data` if possible. Packed integers, sparse constants and
        strings (object arrays of ``bytes``) are converted at each call. Quantized values are not
        dequantized.

        Raises:
            ArgumentError: the tensor is no constant, or its type has no values in a file.
            MalformedModelError: the bytes of a sparse constant or of strings are inconsistent.
        """
        if self.data is None:
            raise ArgumentError(f"tensor {self.index} ({self.name!r}) is computed, not constant")
        if self.type == TensorType.STRING:
            from delegraph.graph.strings import decode_strings  # lazy import: few models have any

            array: NDArray[Any] = decode_strings(self.data, self.shape)
        elif self.type in OBJECT_TYPES:
            raise ArgumentError(f"tensor {self.index} ({self.name!r}) is {self.type.name}")
        elif self.sparsity is not None:
            array = self._dense(self.sparsity)
        else:
            array = stored_values(self.data, self.type, self.shape)
        array.flags.writeable = False
        return array

    def _dense(self, sparsity: Sparsity) -> NDArray[Any]:
        from delegraph.graph.sparsity import expanded  # lazy import: few constants are sparse

        assert self.data is not None
        bits = bits_of(self.type)
        values = stored_values(self.data, self.type, (len(self.data) * 8 // bits,))
        try:
            return expanded(values, sparsity, self.shape, spare=max(0, 8 // bits - 1))
        except OperatorError as error:
            where = f"tensor {self.index} ({self.name!r})"
            raise MalformedModelError(f"{where}: {error}") from error


@_compared_by_identity
class OperatorSpec(NamedTuple):
    """Declaration of one node in the model file.

    Attributes:
        index: position in the subgraph's operator list.
        name: ``CONV_2D``, or the custom code of a custom operator.
        builtin_code: ``BuiltinOperator.CUSTOM`` for custom operators.
        version: operator version, from 1.
        inputs: tensor indices; -1 for an optional input that is absent.
        outputs: tensor indices.
        intermediates: indices of tensors that only have the quantization of inner values (LSTM).
        options: typed options named as in the schema (``Conv2DOptions``); None if there are none.
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
        return self.builtin_code.name == "CUSTOM"


Spec = TypeVar("Spec", bound=NamedTuple)


class Specs(Sequence[Spec]):
    """Declarations of a subgraph's tensors or operators, by index, created at the first access.

    A large model has tens of thousands of specs, and creating them takes as long as reading the
    file. Running a model only needs the fields of specs; delegates and tools need the objects.

    Args:
        kind: the class of the objects; its first field is the index.
        columns: the values of each other field, in order.

    Attributes:
        made: the objects; None before the first access.
    """

    def __init__(self, kind: type[Spec], columns: Sequence[Sequence[Any]]) -> None:
        self._kind = kind
        self._columns = columns
        self.made: tuple[Spec, ...] | None = None

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Return an iterator over the field values of each spec, without creating the specs."""
        return zip(range(len(self)), *self._columns, strict=True)

    def column(self, name: str) -> Sequence[Any]:
        """Return the values of the field *name*, one for each index."""
        return self._columns[self._kind._fields.index(name) - 1]

    def _all(self) -> tuple[Spec, ...]:
        made = self.made
        if made is None:
            made = self.made = tuple(map(partial(tuple.__new__, self._kind), self.rows()))
        return made

    def __len__(self) -> int:
        return len(self._columns[0])

    @overload
    def __getitem__(self, index: int) -> Spec: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Spec, ...]: ...
    def __getitem__(self, index: int | slice) -> Spec | tuple[Spec, ...]:
        return self._all()[index]

    def __iter__(self) -> Iterator[Spec]:
        return iter(self._all())


def rows_of(specs: Sequence[Spec]) -> Iterator[tuple[Any, ...]]:
    """Return an iterator over *specs*; each item has the values of a spec's fields, in order."""
    return specs.rows() if isinstance(specs, Specs) else iter(specs)


def column_of(specs: Sequence[Spec], name: str) -> Sequence[Any]:
    """Return the values of the field *name* of all *specs*, in order."""
    if isinstance(specs, Specs):
        return cast("Specs[Spec]", specs).column(name)
    return [getattr(spec, name) for spec in specs]


@dataclass(frozen=True, slots=True, eq=False)
class SubgraphSpec:
    """Declaration of a subgraph: tensors, and operators in topological order.

    Attributes:
        index: position in the model's list of subgraphs.
        name: name of the subgraph; may be empty.
        tensors: the tensors, by index.
        operators: the operators, by index.
        inputs: tensor indices of the subgraph's inputs.
        outputs: tensor indices of the subgraph's outputs.
    """

    index: int
    name: str
    tensors: Sequence[TensorSpec]
    operators: Sequence[OperatorSpec]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def input_tensors(self) -> list[TensorSpec]:
        """The subgraph's inputs, in order."""
        return [self.tensors[index] for index in self.inputs]

    @property
    def output_tensors(self) -> list[TensorSpec]:
        """The subgraph's outputs, in order."""
        return [self.tensors[index] for index in self.outputs]

    @property
    def is_validation(self) -> bool:
        """Whether the subgraph is for validation, by its name, so that no delegate is applied."""
        return self.name.startswith(VALIDATION)


def variables_of(subgraph: SubgraphSpec) -> tuple[int, ...]:
    """Return the indices of the tensors that keep their value between invokes."""
    return tuple(compress(count(), column_of(subgraph.tensors, "is_variable")))


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """A named way to call a subgraph, with a name for each input and output tensor.

    Attributes:
        key: name of the signature.
        inputs: mapping from the name of each input to its tensor index.
        outputs: mapping from the name of each output to its tensor index.
        subgraph_index: index of the subgraph.
    """

    key: str
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    subgraph_index: int


@dataclass(frozen=True, slots=True, eq=False)
class ExternalBuffers:
    """Constants that a model stores in other files.

    Attributes:
        contents: raw bytes of each external buffer, ``[bytes], uint8``, by its id; views of
            *files*.
        files: the files, or sections of a bundle, ``[bytes], uint8``; empty for most models.
    """

    contents: Mapping[int, NDArray[np.uint8]] = field(default_factory=dict)
    files: tuple[NDArray[np.uint8], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The content of one model file, as :func:`delegraph.graph.load_model` returns it.

    Attributes:
        version: version of the file's schema, which is 3.
        description: text that the converter wrote; may be empty.
        subgraphs: the subgraphs; the first one is the main one.
        signatures: the signatures.
        metadata: mapping from the name of a metadata entry to its raw bytes.
        content: the mapped file, ``[bytes], uint8``; constants are views into it, except constants
            of external buffers.
        external_buffers: constants in other files.
        entries: entries of delegates in the file, after the model; None if there are none.
        file: path of the file, or ``FILE#SECTION``, as it was given; empty for bytes in memory.
    """

    version: int
    description: str
    subgraphs: tuple[SubgraphSpec, ...]
    signatures: tuple[Signature, ...]
    metadata: Mapping[str, NDArray[np.uint8]]
    content: NDArray[np.uint8]
    external_buffers: ExternalBuffers = field(default_factory=ExternalBuffers)
    entries: EntryPlaces | None = None
    file: str = ""

    @property
    def bytes(self) -> int:
        """Number of bytes of the file and of the files with external constants."""
        return len(self.content) + sum(map(len, self.external_buffers.files))

    def __repr__(self) -> str:
        operators = sum(len(subgraph.operators) for subgraph in self.subgraphs)
        counts = {
            "subgraph": len(self.subgraphs),
            "operator": operators,
            "signature": len(self.signatures),
        }
        told = [f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items()]
        return f"<Model of {', '.join(told)}, {len(self.content):,} bytes>"
