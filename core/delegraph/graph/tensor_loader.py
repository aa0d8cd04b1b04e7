"""Converts tensor records to :class:`~delegraph.graph.model.TensorSpec`.

Source:
    ``InterpreterBuilder::ParseTensors``, ``ParseQuantization`` and ``ParseSparsity``,
    tflite/core/interpreter_builder.cc; ``Subgraph::SetTensorParametersReadOnly``,
    tflite/core/subgraph.cc; ``BytesRequired``, tflite/util.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress, count
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import MalformedModelError
from delegraph.graph.dtypes import NUMPY_DTYPES, OBJECT_TYPES, byte_size
from delegraph.graph.model import Quantization, Specs, TensorSpec
from delegraph.schema import tables
from delegraph.schema.enums import DimensionType, TensorType
from delegraph.schema.read_limit import ReadLimit
from delegraph.schema.table import Columns, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.graph.sparsity import DimensionMetadata, Sparsity

_MAX_BYTES = 2**63 - 1
"""Largest number of bytes of a tensor that the official runtime can represent."""

MAX_RANK = 32
"""Largest number of dimensions of an array in every supported NumPy."""


class Copies:
    """Copies of a file's arrays in other types; tensors that share an array share its copy.

    Attributes:
        limit: remaining memory, from which the copies are taken.
    """

    def __init__(self, limit: ReadLimit) -> None:
        self.limit = limit
        self._int32: dict[int, tuple[NDArray[Any], NDArray[np.int32]]] = {}
        self._dimensions: dict[tuple[int, int], DimensionMetadata] = {}

    def int32(self, values: NDArray[Any], what: str) -> NDArray[np.int32]:
        """Return the array *values* of the file's records as ``int32``; *what* names it in errors.

        Raises:
            MalformedModelError: the file's memory limit is exceeded.
        """
        known = self._int32.get(id(values))
        if known is None:  # the key is valid as long as the array is stored
            self.limit.take(4 * len(values), what)
            known = self._int32[id(values)] = values, values.astype(np.int32)
        return known[1]

    def sparse_dimension(
        self, segments: NDArray[Any], indices: NDArray[Any], what: str
    ) -> DimensionMetadata | None:
        """Return a compressed dimension, or None if its *segments* or *indices* are invalid.

        *what* names the dimension in errors.

        Raises:
            MalformedModelError: the file's memory limit is exceeded.
        """
        known = self._dimensions.get((id(segments), id(indices)))
        if known is None:
            ends, inside = self.int32(segments, what), self.int32(indices, what)
            rises = len(ends) > 0 and ends[0] == 0 and bool((ends[1:] >= ends[:-1]).all())
            if not rises or ends[-1] > len(inside):
                return None
            from delegraph.graph.sparsity import DimensionMetadata  # lazy: few models are sparse

            known = DimensionMetadata(0, ends, inside)
            self._dimensions[id(segments), id(indices)] = known
        return known


class TensorLoader:
    """Converts the tensor records of one subgraph to :class:`TensorSpec` objects."""

    def __init__(
        self,
        subgraph: int,
        records: Columns[tables.Tensor],
        buffers: Sequence[tables.Buffer],
        external: Mapping[int, NDArray[np.uint8]],
        copies: Copies,
    ) -> None:
        self._copies = copies
        self._external = external
        self._subgraph = subgraph
        self._records = records
        self._buffers = buffers
        self._known_sizes: dict[tuple[TensorType, tuple[int, ...]], int] = {}

    def load(self) -> Specs[TensorSpec]:
        """Return the specs of the subgraph's tensors, in file order.

        Raises:
            MalformedModelError: a tensor is invalid; the error names the first of these.
        """
        (shapes, kinds, buffers, names, quantizations, are_variable, _, signatures, have_rank,
         _, external_buffers) = self._records.columns  # fmt: skip
        names = [name or "" for name in names]
        shapes = [shape or () for shape in shapes]
        signatures = [a or b for a, b in zip(signatures, shapes, strict=True)]
        nothing = [None] * len(names)
        each = names, kinds, shapes, signatures, nothing, are_variable, nothing, nothing, have_rank
        # Correct for computed tensors.
        columns = list(map(list, (*each, buffers, external_buffers)))
        special = set[int]().union(
            *(
                compress(count(), given)
                for given in (buffers, external_buffers, are_variable, quantizations)
            )
        )
        sorts = set(zip(kinds, shapes, strict=True))
        if unsound := {sort for sort in sorts if not self._is_sound(*sort)}:
            all_sorts = enumerate(zip(kinds, shapes, strict=True))
            special.update(index for index, sort in all_sorts if sort in unsound)
        for index in sorted(special):
            _, *fields = self._spec(index, self._records[index])
            for column, value in zip(columns, fields, strict=True):
                column[index] = value
        return Specs(TensorSpec, columns)

    def _is_sound(self, kind: TensorType, shape: tuple[int, ...]) -> bool:
        """Whether tensors of type *kind* can have this shape."""
        try:
            self._required_bytes(0, kind, shape)
        except MalformedModelError:
            return False
        return True

    def _spec(self, index: int, record: tables.Tensor) -> TensorSpec:
        (shape, kind, buffer, name, quantization, is_variable, sparsity, signature, has_rank,
         _, external_buffer) = record  # fmt: skip
        shape = shape or ()
        if is_variable and kind in OBJECT_TYPES:
            raise self._fault(index, "String variable tensor isn't supported.")
        required = self._required_bytes(index, kind, shape)
        data = self._constant(index, record, required) if buffer or external_buffer else None
        return TensorSpec(
            index,
            name or "",
            kind,
            shape,
            signature or shape,
            data,
            is_variable,
            None if quantization is None else self._quantization(index, quantization, shape),
            None if data is None or sparsity is None else self._sparsity(index, sparsity),
            has_rank,
            buffer,
            external_buffer,
        )

    def _fault(self, index: int, what: str) -> MalformedModelError:
        return MalformedModelError(f"{self._at(index)}: {what}")

    def _at(self, index: int) -> str:
        name = self._records[index].name or ""
        return f"subgraph {self._subgraph} tensor {index} ({name!r})"

    def _constant(
        self, index: int, record: tables.Tensor, required: int
    ) -> NDArray[np.uint8] | None:
        """Return the bytes of a constant, at least *required*; None if the buffer is empty."""
        data = self._buffer(index, record)
        if data is None:
            return None
        if record.is_variable:
            raise self._fault(index, "is a variable tensor with buffer or external buffer")
        if len(data) < required and record.sparsity is None:
            raise self._fault(
                index,
                f"is invalidly specified in schema: its constant has {len(data)} bytes, shape "
                f"{record.shape} of {record.type.name} takes {required}",
            )
        return data

    def _buffer(self, index: int, record: tables.Tensor) -> NDArray[np.uint8] | None:
        """Return the bytes of a tensor's buffer or external buffer; None if it has neither."""
        if record.buffer >= len(self._buffers):
            only = f"(only {len(self._buffers)} buffers)"
            raise self._fault(index, f"specifies out of range buffer {record.buffer} {only}")
        inside = self._buffers[record.buffer].data if record.buffer else None
        if not record.external_buffer:
            return inside
        if inside is not None:
            raise self._fault(index, "is a variable tensor with buffer or external buffer")
        outside = self._external.get(record.external_buffer)
        if outside is None:
            raise self._fault(index, f"the model has no external buffer {record.external_buffer}")
        return outside

    def _required_bytes(self, index: int, kind: TensorType, shape: tuple[int, ...]) -> int:
        """Return the number of bytes of a dense tensor of type *kind* and *shape*.

        *index* is the tensor's index, for errors.
        """
        required = self._known_sizes.get((kind, shape))
        if required is None:
            required = self._known_sizes[kind, shape] = self._dense_bytes(index, kind, shape)
        return required

    def _dense_bytes(self, index: int, kind: TensorType, shape: tuple[int, ...]) -> int:
        if len(shape) > MAX_RANK:
            raise self._fault(index, f"{len(shape)} dimensions, expected at most {MAX_RANK}")
        if shape and min(shape) < 0:
            raise self._fault(
                index, f"BytesRequired number of elements overflowed, the shape is {shape}"
            )
        if kind in OBJECT_TYPES:
            return 0
        if kind not in NUMPY_DTYPES:
            raise self._fault(index, f"Unsupported data type {kind:d} in tensor")
        if byte_size(kind, [dim or 1 for dim in shape]) > _MAX_BYTES:  # so an array can have it
            raise self._fault(
                index, f"BytesRequired number of bytes overflowed, the shape is {shape}"
            )
        return byte_size(kind, shape)

    def _quantization(
        self, index: int, record: tables.QuantizationParameters, shape: tuple[int, ...]
    ) -> Quantization | None:
        if isinstance(record.details, tables.BlockwiseQuantization):
            return self._blockwise(index, record.details, record.quantized_dimension)
        scales = record.scale
        if scales is None or not len(scales):
            return None
        zero_points = record.zero_point
        if zero_points is None:
            raise self._fault(
                index, "Quantization parameters has non-null scale but null zero_point."
            )
        if len(scales) != len(zero_points):
            raise self._fault(
                index,
                f"QuantizationParam has {len(zero_points)} zero_point values and {len(scales)} "
                "scale values. Must have same number.",
            )
        axis = self._channel_axis(index, record.quantized_dimension, shape)
        if len(scales) != 1 and shape and len(scales) != shape[axis]:
            raise self._fault(
                index,
                "num_scales must be 1 for per-layer quantization, or "
                f"{shape[axis]} for per-axis quantization, but got {len(scales)}.",
            )
        return Quantization(scales, self._copies.int32(zero_points, self._at(index)), axis)

    def _channel_axis(self, index: int, axis: int, shape: tuple[int, ...]) -> int:
        """Return the axis of a tensor's channels, given the *axis* that is in the file.

        For a 1-D tensor the axis is always 0, whatever the file says: converters of 2020 gave
        biases the axis of their weights. Current official runtimes reject files with another axis;
        Delegraph accepts them.
        """
        if len(shape) == 1 and axis >= 0:
            return 0
        if axis < 0 or (shape and axis >= len(shape)):
            raise self._fault(
                index, f"quantized_dimension must be in range [0, {len(shape)}). Was {axis}."
            )
        return axis

    def _blockwise(self, index: int, record: Table, axis: int) -> Quantization:
        """Return a blockwise quantization, whose scales are the constant of another tensor."""
        assert isinstance(record, tables.BlockwiseQuantization)
        if not 0 <= record.scales < len(self._records):
            raise self._fault(index, f"blockwise scales tensor {record.scales} is out of range")
        source = self._records[record.scales]
        dtype = NUMPY_DTYPES.get(source.type)
        data = self._buffer(record.scales, source)
        if data is None or dtype is None or dtype.kind != "f" or record.block_size <= 0:
            raise self._fault(
                index,
                f"blockwise scales tensor {record.scales} is no float constant, or block size "
                f"{record.block_size} is not positive",
            )
        count = len(data) // dtype.itemsize
        scales = data[: count * dtype.itemsize].view(dtype)
        return Quantization(scales, np.empty(0, np.int32), axis, record.block_size)

    def _sparsity(self, index: int, record: tables.SparsityParameters) -> Sparsity:
        from delegraph.graph.sparsity import Sparsity

        if record.traversal_order is None or record.dim_metadata is None:
            raise self._fault(index, "Invalid sparsity parameter.")
        dimensions = tuple(
            self._dimension(index, axis, dimension)
            for axis, dimension in enumerate(record.dim_metadata)
        )
        return Sparsity(record.traversal_order, record.block_map, dimensions)

    def _dimension(
        self, index: int, axis: int, record: tables.DimensionMetadata
    ) -> DimensionMetadata:
        from delegraph.graph.sparsity import DimensionMetadata

        if record.format == DimensionType.DENSE:
            return DimensionMetadata(record.dense_size)
        segments = None if record.array_segments is None else record.array_segments[0]
        indices = None if record.array_indices is None else record.array_indices[0]
        if record.format != DimensionType.SPARSE_CSR or segments is None or indices is None:
            raise self._fault(index, f"The {axis}th sparse dimension has invalid parameters.")
        dimension = self._copies.sparse_dimension(segments, indices, self._at(index))
        if dimension is None:
            raise self._fault(
                index, f"The {axis}th sparse dimension has segments that do not fit its indices."
            )
        return dimension


def require_tensors(indices: Sequence[int], num_tensors: int, where: str) -> None:
    """Check that each of *indices* is below *num_tensors*, or -1 for an absent tensor.

    *where* says in the error where the indices are from.

    Raises:
        MalformedModelError: some index is out of range.
    """
    for index in indices:
        if not -1 <= index < num_tensors:
            raise MalformedModelError(
                f"{where}: tensor index {index} is out of range, expected -1 to {num_tensors - 1}"
            )
