"""The tensor of a running subgraph, which kernels, delegates and the interpreter share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.graph.dtypes import BITS, NUMPY_DTYPES, OBJECT_TYPES, byte_size
from delegraph.graph.model import Quantization, TensorSpec, rows_of
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from typing import Self  # type: ignore[attr-defined, unused-ignore]  # 3.11; 3.10 never runs it

    from numpy.typing import NDArray

    from delegraph.graph.model import SubgraphSpec
    from delegraph.graph.sparsity import Sparsity


Shape = Sequence[int]
"""Lengths of a tensor's dimensions."""

_NOT_PLAIN = OBJECT_TYPES | BITS.keys()
"""Types whose stored elements have another size than their dtype."""


class AllocationType(IntEnum):
    """Kind of memory of a tensor's data. Source: TfLiteAllocationType, c/common.h."""

    NONE = 0
    MMAP_RO = 1
    ARENA_RW = 2
    ARENA_RW_PERSISTENT = 3
    DYNAMIC = 4
    PERSISTENT_RO = 5
    CUSTOM = 6
    VARIANT_OBJECT = 7
    NON_CPU = 8


# Looking up a member in its class takes longer than everything else in a property of a tensor.
_CONSTANT, _DYNAMIC = AllocationType.MMAP_RO, AllocationType.DYNAMIC
_ARENA, _VARIABLE = AllocationType.ARENA_RW, AllocationType.ARENA_RW_PERSISTENT
_KNOWN = frozenset({AllocationType.MMAP_RO, AllocationType.PERSISTENT_RO})


class Tensor:
    """A tensor of a running subgraph. Source: TfLiteTensor, tflite/core/c/common.h.

    Attributes:
        index: position in the subgraph's tensor list.
        name: name in the model file; may be empty.
        type: element type.
        dtype: NumPy dtype of ``data``, except for packed 2- and 4-bit types.
        shape: current dimensions, which only ``context.resize_tensor`` may change.
        shape_signature: declared dimensions, -1 where unknown.
        has_rank: whether the rank is known; if not, the declared shape is empty.
        data: the values, an array of ``shape`` and ``dtype``; None until memory is allocated.
            Constants are read-only views of the model file. Each allocation may set another array,
            so a kernel must keep the tensor and read ``data`` when it runs. For packed types (INT4,
            UINT4, INT2) it has the bytes: ``[bytes], uint8``. For a sparse constant it has the
            stored values: ``[stored], dtype``. For STRING it has ``bytes`` objects.
        allocation_type: kind of memory of ``data``.
        is_variable: whether the value is kept between invokes.
        quantization: scales and zero points; None if there are none.
        sparsity: storage order of a sparse constant; None for other tensors.
        delegate: delegate whose buffer may have the value; None if there is none.
        buffer_handle: handle of the delegate's own copy; -1 if there is no copy.
        data_is_stale: whether only the delegate's copy is up to date.
    """

    __slots__ = (
        "_static_allocation_type",
        "allocation_type",
        "buffer_handle",
        "data",
        "data_is_stale",
        "delegate",
        "dtype",
        "has_rank",
        "index",
        "is_variable",
        "name",
        "quantization",
        "shape",
        "shape_signature",
        "sparsity",
        "type",
    )

    def __init__(
        self,
        index: int,
        type: TensorType,
        shape: tuple[int, ...],
        *,
        name: str = "",
        data: NDArray[Any] | None = None,
        allocation_type: AllocationType = AllocationType.ARENA_RW,
        shape_signature: tuple[int, ...] | None = None,
        has_rank: bool = False,
        is_variable: bool = False,
        quantization: Quantization | None = None,
        sparsity: Sparsity | None = None,
    ) -> None:
        self.index = index
        self.name = name
        self.type = type
        self.dtype: np.dtype[Any] = NUMPY_DTYPES[type]
        self.shape = shape
        self.shape_signature = shape if shape_signature is None else shape_signature
        self.has_rank = has_rank
        self.data: Any = data  # an ndarray once allocated; Any spares every kernel a cast
        self.allocation_type = allocation_type
        self._static_allocation_type = allocation_type
        self.is_variable = is_variable
        self.quantization = quantization
        self.sparsity = sparsity
        self.delegate: object | None = None
        self.buffer_handle = -1
        self.data_is_stale = False

    @classmethod
    def from_spec(cls, spec: TensorSpec | tuple[Any, ...], data: NDArray[Any] | None) -> Self:
        """Create the tensor that *spec* declares; *data* is its decoded constant, or None.

        Args:
            spec: the declaration, or the tuple of its fields.
            data: decoded constant, or None.
        """
        tensor = cls.__new__(cls)  # does the same as __init__ in half the time
        (tensor.index, tensor.name, kind, tensor.shape, tensor.shape_signature, _, is_variable,
         tensor.quantization, tensor.sparsity, tensor.has_rank, _, _) = spec  # fmt: skip
        if data is not None:
            allocation = _CONSTANT
        elif is_variable:
            allocation = _VARIABLE
        else:
            allocation = _DYNAMIC if kind in OBJECT_TYPES else _ARENA
        tensor.type, tensor.dtype, tensor.is_variable = kind, NUMPY_DTYPES[kind], is_variable
        tensor.data = data
        tensor.allocation_type = tensor._static_allocation_type = allocation
        tensor.delegate, tensor.buffer_handle, tensor.data_is_stale = None, -1, False
        return tensor

    @property
    def is_constant(self) -> bool:
        """Whether the value is stored in the model file and never changes."""
        return self.allocation_type == _CONSTANT

    @property
    def is_constant_or_persistent(self) -> bool:
        """Whether the value is known when nodes are prepared."""
        return self.allocation_type in _KNOWN

    @property
    def is_dynamic(self) -> bool:
        """Whether the shape is known only while invoking."""
        return self.allocation_type == _DYNAMIC

    def make_dynamic(self) -> None:
        """Make the tensor's shape and memory unknown until its node runs."""
        self.allocation_type = AllocationType.DYNAMIC
        self.data = None

    def make_static(self) -> None:
        """Undo :meth:`make_dynamic`, unless the tensor's type makes it dynamic."""
        if self.allocation_type != self._static_allocation_type:
            self.allocation_type = self._static_allocation_type
            self.data = None

    def adopt_type(self, type: TensorType) -> None:
        """Set the element type that the tensor's node computes, instead of the declared type.

        This may change the kind of memory: strings and resources are outside of the arena.
        """
        if type is self.type:
            return
        if (type in OBJECT_TYPES) != (self.type in OBJECT_TYPES):
            kind = AllocationType.DYNAMIC if type in OBJECT_TYPES else AllocationType.ARENA_RW
            self.allocation_type = self._static_allocation_type = kind
            self.data = None
        self.type, self.dtype = type, NUMPY_DTYPES[type]

    @property
    def is_packed(self) -> bool:
        """Whether several elements share a byte (INT4, UINT4, INT2)."""
        return self.type in BITS

    @property
    def scale(self) -> float:
        """The per-tensor scale; 0.0 without quantization or with several scales, as in TFLite.

        Raises:
            OperatorError: the scale is negative, infinite or NaN.

        Source:
            GetLegacyQuantization, tflite/core/subgraph.cc.
        """
        found = self.quantization
        scale = 0.0 if found is None or len(found.scales) != 1 else found.scale
        if not 0 <= scale < math.inf:
            raise OperatorError(f"tensor {self.name!r} has scale {scale}, expected a positive one")
        return scale

    @property
    def zero_point(self) -> int:
        """The per-tensor zero point; 0 without quantization or with several scales, as in TFLite.

        Raises:
            OperatorError: the zero point is no value of the tensor's type, and this has at most 16
                bits. With such a zero point, sums of differences could overflow.
        """
        found = self.quantization
        if found is None or len(found.scales) != 1:
            return 0
        zero_point = found.zero_point
        if zero_point and self.dtype.kind in "iu" and self.dtype.itemsize <= 2:
            least, most = _limits(self.dtype)
            if not least <= zero_point <= most:
                raise OperatorError(
                    f"tensor {self.name!r} has zero point {zero_point}, expected a value of "
                    f"{self.type.name}"
                )
        return zero_point

    @property
    def initial_value(self) -> int:
        """First value of a variable: the low byte of an INT8 tensor's zero point, else 0.

        Source:
            ResetVariableTensor, tflite/core/api/tensor_utils.cc.
        """
        if self.type is not TensorType.INT8 or self.quantization is None:
            return 0
        return int(np.asarray(self.quantization.zero_point).astype(np.int8))

    @property
    def bytes(self) -> int:
        """Number of bytes of the present shape; 0 for STRING, RESOURCE and VARIANT."""
        if self.type in _NOT_PLAIN:
            return byte_size(self.type, self.shape)
        return math.prod(self.shape) * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"Tensor({self.index}, {self.name!r}, {self.type.name}{list(self.shape)})"


@cache
def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def element_count(shape: Shape) -> int:
    """Return the number of elements of *shape*."""
    return math.prod(shape)


def runtime_tensors(subgraph: SubgraphSpec) -> list[Tensor]:
    """Return the tensors of a subgraph, as they are before allocation."""
    strings: dict[tuple[int, tuple[int, ...]], Any] = {}
    return [
        Tensor.from_spec(row, None if row[_DATA] is None else _constant(row, strings))
        for row in rows_of(subgraph.tensors)
    ]


_DATA = TensorSpec._fields.index("data")


def _constant(row: tuple[Any, ...], strings: dict[tuple[int, tuple[int, ...]], Any]) -> Any:
    """Return the array of the constant whose ``TensorSpec`` has the fields *row*.

    *strings* maps buffer and shape to decoded strings, so that STRING tensors share them.
    """
    spec = TensorSpec._make(row)
    if spec.type is not TensorType.STRING:
        return constant_value(spec)
    key = spec.buffer, spec.shape
    if key not in strings:
        strings[key] = constant_value(spec)
    return strings[key]


def constant_value(spec: TensorSpec) -> Any:
    """Array of the constant *spec*, as in ``Tensor.data``; None if *spec* is no constant."""
    if spec.data is None:
        return None
    if spec.type == TensorType.STRING:
        from delegraph.graph.strings import decode_strings  # here: few models have any

        return decode_strings(spec.data, spec.shape)
    if spec.type in BITS:
        return spec.data if spec.sparsity else spec.data[: byte_size(spec.type, spec.shape)]
    if spec.type in OBJECT_TYPES:
        return None
    dtype = NUMPY_DTYPES[spec.type]
    if spec.sparsity is not None:
        return spec.data[: len(spec.data) // dtype.itemsize * dtype.itemsize].view(dtype)
    count = int(np.prod(spec.shape, dtype=np.int64))
    return spec.data[: count * dtype.itemsize].view(dtype).reshape(spec.shape)
