"""Memory of tensor buffers: bytes or strings, with an element type and a shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import ArgumentError, CompiledModelError
from delegraph.graph.dtypes import OBJECT_TYPES, byte_size
from delegraph.memory.buffers import BUFFER_ALIGNMENT, aligned_buffer
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.operators.tensor import Tensor

_COPIED = ("float32", "float16", "int32", "int8", "uint8", "bool")

_OF_ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
"""Dtypes that NumPy lacks and in which a buffer can be written and read."""

_NAMED = {
    TensorType[name.upper()]: name
    for name in (*_COPIED, *_OF_ML_DTYPES, "int16", "int64", "uint16", "uint32", "float64")
}

_KNOWN: dict[object, np.dtype[Any]] = {
    key: np.dtype(name) for name in _COPIED for key in (np.dtype(name), np.dtype(name).type)
}


def type_name(type_: TensorType) -> str:
    """Return the name of an element type in details, such as ``"float32"``, or ``"unknown"``."""
    return _NAMED.get(type_, "unknown")


def supported_dtype(dtype: Any) -> np.dtype[Any]:
    """Return *dtype* as a NumPy dtype, after checking that buffers support it.

    Raises:
        ArgumentError: buffers do not support the dtype, such as int64, or its byte order.
        TypeError: *dtype* cannot be hashed.
    """
    found: np.dtype[Any] | None = _KNOWN.get(dtype)
    return _looked_up(dtype) if found is None else found


def _looked_up(dtype: Any) -> np.dtype[Any]:
    if isinstance(dtype, str) and dtype in _OF_ML_DTYPES:
        import ml_dtypes  # lazy import: NumPy knows the name from then on

        dtype = getattr(ml_dtypes, dtype)
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise ArgumentError(f"Unsupported dtype: {dtype}") from error
    if found not in _KNOWN and found.name not in _OF_ML_DTYPES:
        known = ", ".join(sorted((*_COPIED, *_OF_ML_DTYPES)))
        raise ArgumentError(
            f"Unsupported dtype: {dtype}; buffers take {known}, and other types as bytes (uint8)"
        )
    return found


class HostMemory:
    """Memory of a tensor buffer, which models can use without a copy.

    Args:
        type: element type.
        shape: dimensions.
        data: ``[bytes], uint8``, aligned to 64 bytes; None means new memory, filled with zeros.
        follows_runs: whether each run sets the size and shape of the memory to those of the output.

    Attributes:
        data: ``[bytes], uint8``; empty for strings.
        objects: strings as ``bytes`` objects, in the shape of the buffer; None for numbers.
    """

    __slots__ = (
        "_read",
        "_read_as",
        "_views",
        "_written",
        "data",
        "follows_runs",
        "objects",
        "shape",
        "type",
    )

    def __init__(
        self,
        type: TensorType,
        shape: Sequence[int],
        data: NDArray[np.uint8] | None = None,
        *,
        follows_runs: bool = False,
    ) -> None:
        self.type = type
        self.shape = tuple(shape)
        self.follows_runs = follows_runs
        self.objects: NDArray[Any] | None = None
        if data is None:
            data = aligned_buffer(byte_size(type, self.shape))
            data[...] = 0
        if type in OBJECT_TYPES:
            self.objects = np.full(self.shape, b"", object)
        self._keep(data)

    def _keep(self, data: NDArray[np.uint8]) -> None:
        self.data = data
        self._views: dict[tuple[TensorType, tuple[int, ...]], NDArray[Any]] = {}
        # Views of the last write and read, as programs often repeat them:
        self._written: NDArray[Any] | None = None
        self._read: NDArray[Any] | None = None
        self._read_as: tuple[Any, Any] = (None, None)  # arguments of the read

    @property
    def is_plain(self) -> bool:
        """Whether a tensor may use the memory without a copy."""
        return self.objects is None and not self.follows_runs

    def view(self, tensor: Tensor) -> NDArray[Any]:
        """Return the memory as an array of *tensor*'s type and shape, without a copy.

        The memory must have as many bytes as the tensor. Packed types are returned as bytes. Later
        calls for the same type and shape return the same array object.
        """
        key = tensor.type, tensor.shape
        found = self._views.get(key)
        if found is None:
            found = self.data[: tensor.bytes]
            if not tensor.is_packed:
                found = found.view(tensor.dtype).reshape(tensor.shape)
            self._views[key] = found
        return found

    def hold(self, values: NDArray[Any], type: TensorType, shape: tuple[int, ...]) -> None:
        """Store a copy of *values*, an output whose size is not known before the run.

        The memory gets the element type *type* and the *shape* of the output.
        """
        self.type, self.shape = type, shape
        if type in OBJECT_TYPES:
            self.objects = values
            self._keep(aligned_buffer(0))
            return
        data = aligned_buffer(values.nbytes)
        data[...] = as_bytes(values)
        self.objects = None
        self._keep(data)

    def put_again(self, values: Any) -> bool:
        """Copy *values* and return True if dtype and shape are those of the last array written.

        Otherwise copy nothing and return False; then :meth:`put` copies after checks.
        """
        view = self._written
        if (
            view is None
            or type(values) is not np.ndarray
            or values.dtype is not view.dtype
            or values.shape != view.shape
        ):
            return False
        view[...] = values
        return True

    def put(self, values: NDArray[Any]) -> None:
        """Copy the bytes of *values* to the start of the memory.

        Raises:
            CompiledModelError: the array has more bytes, or the memory is read-only.
        """
        source = as_bytes(values)
        if len(source) > len(self.data):
            raise CompiledModelError(
                "WriteTensorBuffer: source buffer is larger than the tensor buffer: "
                f"{len(source)} bytes for {len(self.data)}"
            )
        if not self.data.flags.writeable:
            raise CompiledModelError("WriteTensorBuffer: the memory of the buffer is read-only")
        written = self.data[: len(source)]
        written[...] = source
        self._written = written.view(values.dtype).reshape(values.shape)

    def put_strings(self, values: NDArray[Any]) -> None:
        """Copy the strings *values* to the first elements of a buffer of strings.

        Raises:
            ArgumentError: an element is neither text nor bytes.
            CompiledModelError: there are more elements than the buffer has.
        """
        assert self.objects is not None, "only buffers of strings"
        items = values.reshape(-1).tolist()
        if len(items) > self.objects.size:
            raise CompiledModelError(
                "WriteTensorBuffer: source buffer is larger than the tensor buffer: "
                f"{len(items)} strings for {self.objects.size}"
            )
        for item in items:
            if not isinstance(item, str | bytes):
                raise ArgumentError(f"Unsupported dtype: object; {item!r} is no string")
        flat = self.objects.reshape(-1)
        for position, item in enumerate(items):
            flat[position] = item.encode() if isinstance(item, str) else item

    def get_again(self, shape: Any, dtype: Any) -> NDArray[Any] | None:
        """Return a copy of the content if *shape* and *dtype* are those of the last read.

        Otherwise return None; then :meth:`get` reads, with checks.
        """
        known, known_dtype = self._read_as
        if dtype is not known_dtype or type(shape) is not int or shape != known:
            return None
        return None if self._read is None else self._read.copy()

    def get(self, shape: Any, dtype: Any) -> NDArray[Any]:
        """Return a new array of *shape* with the first bytes of the memory.

        Raises:
            ArgumentError: buffers cannot be read as this dtype.
            CompiledModelError: the array has more bytes than the memory.
        """
        result = np.empty(shape, supported_dtype(dtype))
        if result.nbytes > len(self.data):
            raise CompiledModelError(
                "ReadTensorToBuffer: destination buffer is larger than the tensor buffer: "
                f"{result.nbytes} bytes of {len(self.data)}"
            )
        read = self.data[: result.nbytes]
        as_bytes(result)[...] = read
        if type(shape) is int:
            self._read, self._read_as = read.view(result.dtype), (shape, dtype)
        return result

    def get_strings(self, shape: Any) -> NDArray[Any]:
        """Return the first strings as ``bytes`` objects in a new array of *shape*.

        Raises:
            CompiledModelError: the array has more elements than the buffer.
        """
        assert self.objects is not None, "only buffers of strings"
        result = np.empty(shape, object)
        if result.size > self.objects.size:
            raise CompiledModelError(
                "ReadTensorToBuffer: destination buffer is larger than the tensor buffer: "
                f"{result.size} strings of {self.objects.size}"
            )
        result.reshape(-1)[...] = self.objects.reshape(-1)[: result.size]
        return result


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of a C-contiguous array, ``[bytes], uint8``, without a copy."""
    return array.reshape(-1).view(np.uint8)


def shared_memory(array: NDArray[Any]) -> HostMemory:
    """Return the memory of a C-contiguous array, or a copy if it is not aligned to 64 bytes."""
    raw = as_bytes(np.asarray(array))
    if address_of(raw) % BUFFER_ALIGNMENT:
        raw, source = aligned_buffer(len(raw)), raw
        raw[...] = source
    return HostMemory(TensorType[array.dtype.name.upper()], (array.size,), raw)


def address_of(array: NDArray[Any]) -> int:
    """Return the address of an array's first byte."""
    address: int = array.__array_interface__["data"][0]
    return address


def overlapping(memories: Iterable[HostMemory]) -> set[HostMemory]:
    """Return the memories that overlap another memory or occur twice."""
    found: set[HostMemory] = set()
    last: tuple[int, HostMemory] | None = None
    starts = sorted(((address_of(m.data), m) for m in memories), key=lambda pair: pair[0])
    for start, memory in starts:
        if last is not None and (start < last[0] or memory is last[1]):
            found |= {memory, last[1]}
        end = start + max(len(memory.data), 1)
        if last is None or end > last[0]:
            last = end, memory
    return found
