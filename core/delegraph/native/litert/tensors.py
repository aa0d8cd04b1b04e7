"""Delegraph's tensors for a ``TfLiteContext``, with the same indices and memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError
from delegraph.graph.dtypes import NUMPY_DTYPES, OBJECT_TYPES
from delegraph.graph.model import SubgraphSpec, TensorSpec
from delegraph.graph.strings import decode_strings, encode_strings
from delegraph.memory.buffers import aligned_buffer
from delegraph.native import tensor_types
from delegraph.native.abi import TfLiteContext, TfLiteTensor, ints_at, libc, malloc
from delegraph.native.litert.model_alignment import require_same_types
from delegraph.operators.checks import require_dimensions
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.schema.enums import TensorType

_SIZE = ctypes.sizeof(TfLiteTensor)
_DATA: int = TfLiteTensor.data.offset
_KNOWN_WHEN_PREPARED = (AllocationType.MMAP_RO, AllocationType.PERSISTENT_RO)


class LiteRtTensors:
    """Tensors of one subgraph of an official interpreter.

    A tensor has its name, quantization and sparsity from the model file, and its shape, allocation
    type and values from the runtime. Arrays are views of the runtime's memory, which may be moved
    or freed later. So arrays are valid only during the callback in which they were bound. Constants
    are read-only.

    Attributes:
        list: the tensor of each index; tensors that delegates and kernels added come last.
        generation: number that increases whenever tensors may have lost their data.
    """

    def __init__(self, context: int, specs: Sequence[TensorSpec]) -> None:
        self._context = TfLiteContext.from_address(context)
        self.generation = 0
        self.list = [Tensor.from_spec(spec, None) for spec in specs]

    def __len__(self) -> int:
        """Return the number of tensors in the runtime."""
        return int(self._context.tensors_size)

    @property
    def base(self) -> int:
        """Address of the first tensor struct; it changes when tensors are added."""
        return int(self._context.tensors)

    def address(self, index: int) -> int:
        """Return the address of the runtime's struct of tensor *index*."""
        return self.base + index * _SIZE

    def native(self, index: int) -> Any:
        """Return the runtime's struct of tensor *index*, valid until tensors are added."""
        return TfLiteTensor.from_address(self.base + index * _SIZE)

    def require_types_of(self, subgraph: SubgraphSpec) -> None:
        """Check that the runtime's tensors have the types that the model file declares.

        Raises:
            DelegateError: the types do not match the model.
        """
        specs = subgraph.tensors
        found = [self.native(i).type for i in range(min(len(specs), len(self)))]
        expected = [
            tensor_types.C_TYPES.get(spec.type, found[i] if i < len(found) else 0)
            for i, spec in enumerate(specs)
        ]
        require_same_types(found, expected, subgraph.index)

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the present dimensions of tensor *index*."""
        return ints_at(self.native(index).dims)

    def data_cell(self, index: int) -> ctypes.c_size_t:
        """Return the memory cell in the runtime that has the address of tensor *index*'s values."""
        return ctypes.c_size_t.from_address(self.base + index * _SIZE + _DATA)

    # -- before nodes are asked about or prepared ----------------------------------------------

    def refresh(self, indices: Iterable[int]) -> None:
        """Read the present shapes of tensors *indices*, and remove all data except constants."""
        self.generation += 1
        for index in indices:
            tensor, native = self.list[index], self.native(index)
            if not (tensor.is_constant and tensor.data is not None):
                self._refresh_type(tensor, native)
                tensor.shape = ints_at(native.dims)
                tensor.allocation_type = AllocationType(native.allocation_type)
                known = tensor.allocation_type in _KNOWN_WHEN_PREPARED
                tensor.data = _array(tensor, native) if known else None

    def _refresh_type(self, tensor: Tensor, native: Any) -> None:
        """Set the type of *tensor* to that in its C struct *native*, which a kernel may change."""
        type = tensor_types.FROM_C.get(native.type, tensor.type)
        if type is not tensor.type:
            tensor.type, tensor.dtype = type, NUMPY_DTYPES[type]

    def write_types(self, indices: Iterable[int]) -> None:
        """Write the types of tensors *indices*, which kernels decide, to the runtime's structs."""
        for index in indices:
            type = tensor_types.C_TYPES.get(self.list[index].type)
            native = self.native(index)
            if type is not None and type != native.type:
                native.type = type

    def refresh_all(self) -> None:
        """Read the present shapes of all tensors, and append tensors added by the runtime."""
        for index in range(len(self.list), len(self)):
            self.list.append(_added(index, self.native(index)))
        self.refresh(range(len(self.list)))

    # -- while invoking ------------------------------------------------------------------------

    def bind(self, tensor: Tensor) -> None:
        """Read the present shape and value of a tensor."""
        native = self.native(tensor.index)
        tensor.shape = ints_at(native.dims)
        tensor.data = _array(tensor, native)

    def write_strings(self, tensor: Tensor) -> None:
        """Copy the strings of *tensor* to memory of the runtime, which frees it later."""
        encoded = encode_strings(tensor.data)
        address = malloc(encoded.nbytes)
        ctypes.memmove(address, encoded.ctypes.data, encoded.nbytes)
        native = self.native(tensor.index)
        if native.data:
            libc().free(native.data)
        native.data, native.bytes = address, encoded.nbytes


class WorkingMemory:
    """Working memory of one kernel; see ``OpContext.scratch``."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self.data: NDArray[Any] = aligned_buffer(size)[:size].view(dtype).reshape(shape)


def _array(tensor: Tensor, native: Any) -> NDArray[Any] | None:
    """Return *tensor*'s value as an array on the memory of its C struct *native*.

    Texts are copied. The result is None if there is no memory, or if the value is a resource.
    """
    address, size = native.data, native.bytes
    if tensor.type in OBJECT_TYPES:
        is_text = tensor.type is TensorType.STRING and address
        return _strings(tensor, address, size) if is_text else None
    if not address:
        return None if size or 0 not in tensor.shape else np.empty(tensor.shape, tensor.dtype)
    memory = (ctypes.c_char * size).from_address(address)
    array: NDArray[Any]
    if tensor.is_packed:
        array = np.ndarray((size,), np.uint8, memory)
    elif tensor.sparsity is not None:
        array = np.ndarray((size // tensor.dtype.itemsize,), tensor.dtype, memory)
    else:
        array = np.ndarray(tensor.shape, tensor.dtype, memory)
    if tensor.is_constant:
        array.flags.writeable = False
    return array


def _strings(tensor: Tensor, address: int, size: int) -> NDArray[Any]:
    return decode_strings(np.frombuffer(ctypes.string_at(address, size), np.uint8), tensor.shape)


def _added(index: int, native: Any) -> Tensor:
    """Return tensor *index*, which is not in the model file, from its C struct *native*."""
    type = tensor_types.FROM_C.get(native.type, TensorType.FLOAT32)
    return Tensor(index, type, ints_at(native.dims))


def require_resizable(tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Check that a tensor can now be resized to *shape*.

    Raises:
        OperatorError: a dimension is negative or does not fit an int32, the tensor is a constant,
            or its memory is already in use.
    """
    require_dimensions(tensor, shape)
    if tensor.is_constant:
        raise OperatorError(f"{tensor!r} is constant and cannot become {list(shape)}")
    if tensor.data is not None and not tensor.is_dynamic:
        raise OperatorError(f"{tensor!r} cannot become {list(shape)} while invoking")
