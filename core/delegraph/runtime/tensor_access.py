"""Reads and writes tensors with the rules of the official Python interpreter.

Source:
    tflite/python/interpreter_wrapper/interpreter_wrapper.cc and numpy.cc.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy import ndarray

from delegraph.errors import ArgumentError, ResizeError, StateError
from delegraph.graph.dtypes import BITS, OBJECT_TYPES, pack, unpack
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

STORED_AS_SEEN = frozenset(TensorType) - OBJECT_TYPES - BITS.keys()
"""Types whose arrays users read and write in the form in which they are stored."""

_COPIED_AT_ONCE = 500
"""Largest number of elements that NumPy copies without letting other threads run.

Source:
    ``NPY_BEGIN_THREADS_THRESHOLDED``, numpy/_core/include/numpy/ndarraytypes.h.
"""

Target: TypeAlias = "tuple[Tensor, NDArray[Any], np.dtype[Any], tuple[int, ...]]"
"""A tensor, its array, and the dtype and shape that a value must have to be copied into it."""


def write_tensor(tensor: Tensor, value: ArrayLike) -> None:
    """Copy *value*, which must have the tensor's dtype and shape, into a tensor.

    Raises:
        ArgumentError: the dtype or the shape differs, or the tensor has no memory yet.
    """
    array = np.asarray(value)
    is_plain = tensor.type in STORED_AS_SEEN
    if not is_plain and tensor.type in OBJECT_TYPES:
        _write_objects(tensor, array)
        return
    if array.dtype != tensor.dtype:
        order = "" if array.dtype.isnative else " in the byte order of other machines"
        raise ArgumentError(
            f"Cannot set tensor: Got value of type {array.dtype.name.upper()}{order} but expected "
            f"type {tensor.type.name} for input {tensor.index}, name: {tensor.name} "
        )
    if array.shape != tensor.shape:
        raise _wrong_shape(tensor, array)
    data = tensor.data
    if data is None:
        raise ArgumentError(
            "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first"
        )
    try:
        data[...] = array if is_plain else pack(array, tensor.type)
    except ValueError:
        if data.flags.writeable:
            raise
        raise ArgumentError(f"tensor {tensor.index} ({tensor.name!r}) is constant") from None


class Shortcuts:
    """Prepared data with which ``Interpreter`` quickly runs a subgraph and copies its tensors.

    A model of one small operator runs in a microsecond, of which each attribute access and each
    Python call takes a few percent. Python finds an attribute of a session, which has many
    attributes, in 20 ns, and a slot in 3 ns. The subgraph clears the object whenever nodes or
    memory may change.

    Args:
        turn: the interpreter's lock, see ``Calls.turn``.

    Attributes:
        turn: the interpreter's lock.
        invoke: function that runs the subgraph while no other call can run; None if there is none,
            or if a profile is taken.
        small_targets: small inputs that were set before, by index; other threads cannot run while
            NumPy copies a value into one.
        large_targets: other inputs that were set before; the lock must be held to copy one.
        sources: outputs that were read before, by index, each with its type.
    """

    __slots__ = ("invoke", "large_targets", "small_targets", "sources", "turn")

    def __init__(self, turn: dict[str, tuple[str, int]]) -> None:
        self.turn = turn
        self.invoke: Callable[[], object] | None = None
        self.small_targets: dict[int, Target] = {}
        self.large_targets: dict[int, Target] = {}
        self.sources: dict[int, tuple[Tensor, TensorType]] = {}

    def clear(self) -> None:
        """Forget everything that was prepared."""
        self.invoke = None
        self.small_targets.clear()
        self.large_targets.clear()
        self.sources.clear()

    def add_target(self, tensor: Tensor) -> None:
        """Make the next copies into the input *tensor* fast, if it has an array of numbers."""
        data = tensor.data
        if data is None or tensor.type not in STORED_AS_SEEN or not data.flags.writeable:
            return
        is_small = math.prod(tensor.shape) <= _COPIED_AT_ONCE
        targets = self.small_targets if is_small else self.large_targets
        targets[tensor.index] = tensor, data, tensor.dtype, tensor.shape

    def add_source(self, tensor: Tensor) -> None:
        """Make the next copies of the output *tensor* fast, if it has numbers."""
        if tensor.type in STORED_AS_SEEN:
            self.sources[tensor.index] = tensor, tensor.type

    def copy_large(self, index: object, value: object) -> bool:
        """Copy *value* into the large input *index* if the copy is prepared; return whether it was.

        The copy needs an array of the input's dtype and shape, and an input that was set before.
        The caller holds the lock.
        """
        target = self.large_targets.get(index) if type(index) is int else None
        if target is None or type(value) is not ndarray:
            return False
        tensor, data, dtype, shape = target
        if value.dtype is not dtype or value.shape != shape:
            return False
        if tensor.data is not data or tensor.delegate is not None:
            return False
        data[...] = value
        return True


def _wrong_shape(tensor: Tensor, array: NDArray[Any]) -> ArgumentError:
    where = f"for input {tensor.index}, name: {tensor.name}"
    if array.ndim != len(tensor.shape):
        return ArgumentError(
            "Cannot set tensor: Dimension mismatch. "
            f"Got {array.ndim} but expected {len(tensor.shape)} {where}."
        )
    axis = next(i for i, dim in enumerate(tensor.shape) if array.shape[i] != dim)
    return ArgumentError(
        "Cannot set tensor: Dimension mismatch. "
        f"Got {array.shape[axis]} but expected {tensor.shape[axis]} for dimension {axis} of "
        f"input {tensor.index}."
    )


def _write_objects(tensor: Tensor, array: NDArray[Any]) -> None:
    """Copy *array* of strings, as bytes, into a STRING tensor."""
    if tensor.type != TensorType.STRING:
        raise ArgumentError(f"a {tensor.type.name} tensor cannot be set ({tensor.name!r})")
    if array.dtype.kind not in "SUO":
        raise ArgumentError(
            f"Cannot set tensor: Got value of type {array.dtype.name.upper()} but expected type "
            f"STRING for input {tensor.index}, name: {tensor.name} "
        )
    if array.shape != tensor.shape:
        raise _wrong_shape(tensor, array)
    values = np.empty(array.shape, object)
    # All its bytes, including zeros at the end.
    is_one = array.ndim == 0 and array.dtype.kind == "S"
    for i, item in enumerate([array.tobytes()] if is_one else array.reshape(-1).tolist()):
        if not isinstance(item, str | bytes):
            raise ArgumentError(f"element {i} is {type(item).__name__}; strings are str or bytes")
        values.reshape(-1)[i] = item.encode() if isinstance(item, str) else item
    tensor.data = values


def read_tensor(tensor: Tensor, is_allocated: bool = False) -> Any:
    """Return a copy of a tensor's value: an ndarray, or a NumPy scalar for a scalar tensor.

    2- and 4-bit integers are unpacked. A sparse constant is a 1-D array of its stored values.
    Strings are an object array of ``bytes``. *is_allocated* is for the advice of the error.

    Raises:
        ArgumentError: the tensor has no data.
    """
    data = tensor.data
    if tensor.type in STORED_AS_SEEN and data is not None:
        return data.copy() if data.ndim else data[()]
    if data is None:
        if 0 in tensor.shape and tensor.sparsity is None:
            return np.empty(tensor.shape, tensor.dtype)
        if tensor.allocation_type == AllocationType.NONE or tensor.type in OBJECT_TYPES:
            raise ArgumentError(f"tensor {tensor.index} ({tensor.name!r}) holds no data")
        raise ArgumentError(_NULL + _INNER * is_allocated)
    if tensor.is_packed and tensor.sparsity is None:
        return unpack(data, tensor.type, tensor.shape)
    return _read_objects(tensor) if tensor.type in OBJECT_TYPES else data.copy()


_NULL = "Tensor data is null. Run allocate_tensors() first"
_INNER = (
    "; they are allocated, but a delegate has this one inside its partition: "
    "Interpreter(..., experimental_preserve_all_tensors=True, delegates=[]) keeps all of them"
)


def _read_objects(tensor: Tensor) -> NDArray[Any]:
    if any(item is None for item in tensor.data.reshape(-1).tolist()):
        raise ArgumentError(f"tensor {tensor.index} ({tensor.name!r}) holds no data yet")
    return np.array(tensor.data)


def signature_of(tensor: Tensor) -> tuple[int, ...]:
    """Return the declared shape of *tensor* if it has a -1, else the present shape.

    Files without -1 in a shape have no signature. The official interpreter then reports the present
    shape, and a strict resize must keep it.
    """
    declared = tensor.shape_signature
    return declared if -1 in declared else tensor.shape


def require_resizable(tensor: Tensor, shape: Sequence[int]) -> None:
    """Check that *shape* differs from the declared shape of *tensor* only in dimensions of -1.

    Raises:
        ResizeError: *shape* has another rank, or changes a declared dimension.
    """
    signature = signature_of(tensor)
    rule = (
        "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1, and "
        f"{tensor.name!r} is declared {list(signature)}"
    )
    if len(shape) != len(signature):
        raise ResizeError(
            f"Attempting to resize tensor {tensor.index} with {len(signature)} dimensions to "
            f"{len(shape)}. {rule}"
        )
    for axis, (declared, dim) in enumerate(zip(signature, shape, strict=True)):
        if declared not in (-1, dim):
            raise ResizeError(
                f"Attempting to resize dimension {axis} of tensor {tensor.index} with value "
                f"{declared} to {dim}. {rule}"
            )


class _Exporter:
    """Object that a view of memory refers to: it exists as long as the view or a slice of it."""

    def __init__(self, data: NDArray[Any]) -> None:
        self._data = data
        self.__array_interface__ = data.__array_interface__


class MemoryViews:
    """Creates views of memory and counts the views that are still alive.

    >>> views = MemoryViews()
    >>> half = views.export(np.zeros(4))[:2]
    >>> bool(views)
    True
    >>> del half
    >>> bool(views)
    False
    """

    def __init__(self) -> None:
        self.alive: set[weakref.ref[_Exporter]] = set()  # called often, so not a WeakSet

    def of(self, tensor: Tensor, is_allocated: bool = False) -> Any:
        """Return a view of the values of *tensor*, which counts as alive while it is used.

        For strings, the result is a copy. For a tensor without dimensions it is a number, as in the
        official class; this number does not count as a view, and cannot be used to write.
        *is_allocated* is for the advice of the error.

        Raises:
            ArgumentError: the tensor has no data.
        """
        if tensor.data is None:
            raise ArgumentError(_NULL + _INNER * is_allocated)
        if tensor.data.dtype.hasobject or tensor.data.ndim == 0:
            return read_tensor(tensor)
        return self.export(tensor.data)

    def export(self, data: NDArray[Any]) -> NDArray[Any]:
        """Return a view of *data* that counts as alive until it and all its slices are deleted."""
        exporter = _Exporter(data)
        self.alive.add(weakref.ref(exporter, self.alive.discard))
        return np.asarray(exporter)

    def require_none(self) -> None:
        """Raise an error if any view is alive.

        Raises:
            StateError: a view is alive.
        """
        if self.alive:
            raise StateError(
                "There is at least 1 reference to internal data in the interpreter in the form of "
                "a numpy array or slice. Be sure to only hold the function returned from tensor() "
                "if you are using raw data access."
            )

    def __bool__(self) -> bool:
        return bool(self.alive)
