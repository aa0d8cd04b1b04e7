"""Tensors of a subgraph as an array of ``TfLiteTensor`` structs that never moves.

Delegraph writes shapes, memory and owners to the structs before a delegate's code runs. Afterwards,
Delegraph reads the changes that the code made: types of added tensors, dynamic allocation, buffer
handles.

Memory that a delegate may free or reallocate comes from ``malloc``, as in TFLite: the ``dims`` of
every tensor, and the data of dynamic tensors that the delegate writes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from delegraph.errors import MalformedModelError, OperatorError
from delegraph.graph.strings import decode_strings, encode_strings
from delegraph.native.abi import (
    NULL_BUFFER_HANDLE,
    TfLiteTensor,
    int_array,
    ints_at,
    libc,
    malloc_int_array,
)
from delegraph.native.compiled.libc_memory import LibcMemory
from delegraph.native.compiled.tensor_parameters import write_quantization, write_sparsity
from delegraph.native.tensor_types import C_TYPES, FROM_C
from delegraph.operators.registration import OpContext
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.schema.enums import TensorType

SIZE = ctypes.sizeof(TfLiteTensor)

HEADROOM = 4096
"""Number of tensors that delegates may add to a subgraph."""

_DYNAMIC = int(AllocationType.DYNAMIC)

_PLANNED = (AllocationType.ARENA_RW, AllocationType.ARENA_RW_PERSISTENT)


class TensorStruct:
    """C struct of one tensor, with the values that were last written to it.

    Args:
        address: address of the struct.
        tensor: the tensor that the struct describes.
        is_added: whether a delegate added the tensor, and so decides its type and allocation.
    """

    __slots__ = (
        "_data",
        "_kept",
        "_memory",
        "_shape",
        "_state",
        "_strings",
        "is_added",
        "struct",
        "tensor",
    )

    def __init__(self, address: int, tensor: Tensor, *, is_added: bool) -> None:
        ctypes.memset(address, 0, SIZE)
        self.struct: Any = TfLiteTensor.from_address(address)
        self.tensor = tensor
        self.is_added = is_added
        self._shape: tuple[int, ...] | None = None  # shape that the struct's dims have
        self._state: Any = None  # state written to the struct; None if C has changed it
        self._data: Any = None  # array to which the struct's data points
        self._memory: LibcMemory | None = None  # memory of _data if C may reallocate it
        self._strings: Any = None  # as TFLite stores them
        self._kept: list[Any] = []  # memory to which the other pointers refer
        self.struct.buffer_handle = NULL_BUFFER_HANDLE
        if not is_added:
            self._describe()

    def _describe(self) -> None:
        """Write the fields that never change, such as the name and the quantization."""
        struct, tensor = self.struct, self.tensor
        name = tensor.name.encode()
        unknown = tensor.shape_signature if -1 in tensor.shape_signature else ()
        signature = int_array(unknown)
        self._kept += [name, signature]
        struct.name = name
        struct.is_variable = tensor.is_variable
        struct.dims_signature = ctypes.addressof(signature)
        if tensor.quantization is not None:
            self._kept += write_quantization(struct, tensor.quantization)
        if tensor.sparsity is not None:
            self._kept += write_sparsity(struct, tensor.sparsity)

    def release(self) -> None:
        """Free the memory that the struct owns, and clear the struct."""
        libc().free(self.struct.dims)
        ctypes.memset(ctypes.addressof(self.struct), 0, SIZE)
        self._data = self._memory = self._strings = None

    # -- from Delegraph to C -------------------------------------------------------------------

    def write(self, owner: int) -> None:
        """Write all fields of the struct except the data.

        Args:
            owner: address that represents the tensor's delegate.
        """
        struct, tensor = self.struct, self.tensor
        if self._shape != tensor.shape:
            self.take_dims(malloc_int_array(tensor.shape))
        memory = tensor.allocation_type, tensor.buffer_handle, tensor.data_is_stale
        state = owner, tensor.type, memory
        if state == self._state:
            return
        self._state = state
        if not self.is_added:
            struct.allocation_type = int(tensor.allocation_type)
            struct.type = C_TYPES.get(tensor.type, 0)
        if not tensor.is_constant:  # a constant's bytes are those in the file
            struct.bytes = tensor.bytes
        struct.delegate = owner
        struct.buffer_handle = tensor.buffer_handle
        struct.data_is_stale = tensor.data_is_stale

    def take_dims(self, dims: int) -> None:
        """Replace the struct's dimensions by the ``TfLiteIntArray`` at address *dims*.

        The struct owns that array from now on. The old array is freed.
        """
        libc().free(self.struct.dims)
        self.struct.dims = dims
        self._shape = self.tensor.shape
        self.struct.bytes = self.tensor.bytes

    def write_data(self) -> None:
        """Set the struct's data pointer to the tensor's data, which C may read and write."""
        data = self.tensor.data
        if self.tensor.type == TensorType.STRING and data is not None:
            self._write_strings(data)
        elif data is not self._data:
            is_plain = isinstance(data, np.ndarray) and not data.dtype.hasobject
            if is_plain and not data.flags.c_contiguous:
                raise OperatorError(f"{self.tensor!r}: its data is not contiguous")
            self.struct.data = data.ctypes.data if is_plain else None
            if is_plain and self.tensor.is_constant:
                self.struct.bytes = data.nbytes  # fewer than the shape needs, if it is sparse
            self._data, self._memory = data, None

    def write_no_data(self) -> None:
        """Set the struct's data pointer to null, because memory is not planned yet."""
        self._data = self._memory = self._strings = self.struct.data = None

    def write_data_to_fill(self) -> None:
        """Set the data pointer to writable memory; a dynamic tensor gets new memory."""
        tensor = self.tensor
        if not tensor.is_dynamic:
            self.write_data()
        elif tensor.type == TensorType.STRING or tensor.data is None:
            self.write_no_data()
        elif self._memory is None or tensor.data is not self._data:
            before = tensor.data
            self.allocate()
            np.copyto(tensor.data, before)

    def allocate(self) -> None:
        """Allocate libc memory for the tensor's present shape, uninitialised."""
        tensor = self.tensor
        self._own(LibcMemory.of(tensor.bytes))

    def resized(self) -> None:
        """Update the data pointer of a resized tensor; a dynamic tensor gets new memory."""
        if self.tensor.type == TensorType.STRING:
            return  # the delegate allocates its data
        if self.tensor.is_dynamic and self.tensor.data is not None:
            self.allocate()
        else:
            self.write_data()

    def provide_memory(self) -> None:
        """Allocate working memory for a tensor that a delegate added, if it has too little."""
        tensor = self.tensor
        is_planned = tensor.allocation_type in _PLANNED
        if (
            self.is_added
            and is_planned
            and (self._memory is None or self._memory.size != tensor.bytes)
        ):
            self.allocate()

    def _own(self, memory: LibcMemory) -> None:
        tensor = self.tensor
        shape, dtype = tensor.shape, tensor.dtype
        if tensor.is_packed:
            shape, dtype = (tensor.bytes,), np.dtype(np.uint8)
        self._memory = memory
        self._data = tensor.data = memory.array(dtype, shape)
        self.struct.data, self.struct.bytes = memory.address, tensor.bytes

    def _write_strings(self, strings: Any) -> None:
        if strings is self._data and self.tensor.is_constant:
            return
        self._data, self._strings = strings, encode_strings(strings)
        self.struct.data, self.struct.bytes = self._strings.ctypes.data, len(self._strings)

    # -- from C to Delegraph -------------------------------------------------------------------

    def read_description(self, context: Any) -> None:
        """Read type, allocation and shape that a delegate set for a tensor it added.

        Raises:
            OperatorError: the type number is unknown.
        """
        struct, tensor = self.struct, self.tensor
        if not self.is_added or not struct.type:
            return
        if struct.type not in FROM_C:
            raise OperatorError(
                f"tensor {tensor.index} was given type {struct.type}, which is none"
            )
        if tensor.type != FROM_C[struct.type]:
            context.set_tensor_type(tensor, FROM_C[struct.type])
        tensor.allocation_type = AllocationType(struct.allocation_type)
        shape = ints_at(struct.dims)
        if shape != tensor.shape:  # changed without ResizeTensor
            context.resize_tensor(tensor, shape)
            self._shape, struct.bytes = tensor.shape, tensor.bytes

    def read_allocation(self, context: OpContext) -> None:
        """Make the tensor dynamic if a kernel has made its struct dynamic while preparing."""
        is_dynamic = self.struct.allocation_type == _DYNAMIC
        if is_dynamic and not self.is_added and not self.tensor.is_dynamic:
            context.set_dynamic(self.tensor)

    def read_state(self, delegate: object) -> None:
        """Read the buffer handle and the flag for stale data that a delegate has set."""
        struct, tensor = self.struct, self.tensor
        if struct.buffer_handle != tensor.buffer_handle:
            tensor.buffer_handle = struct.buffer_handle
            tensor.delegate = delegate
            self._state = None
        if struct.data_is_stale != tensor.data_is_stale:
            tensor.data_is_stale = struct.data_is_stale
            self._state = None

    def read_filled(self) -> None:
        """Use the data to which C code has reallocated a dynamic tensor.

        Raises:
            OperatorError: the strings are damaged, or fewer than the shape needs.
        """
        if not self.tensor.is_dynamic:
            return
        address: int | None = self.struct.data
        if self.tensor.type == TensorType.STRING:
            self._read_strings(address)
        elif address is not None and (self._memory is None or address != self._memory.address):
            if self._memory is not None:
                self._memory.forget()
            self._own(LibcMemory(address, self.struct.bytes))

    def _read_strings(self, address: int | None) -> None:
        if address is None:
            return
        memory = LibcMemory(address, self.struct.bytes)
        self.struct.data = None
        try:
            self.tensor.data = decode_strings(np.asarray(memory), self.tensor.shape)
        except MalformedModelError as error:
            raise OperatorError(f"{self.tensor!r}: {error}") from error


class TensorStructs:
    """C structs of all tensors of one subgraph.

    Args:
        tensors: tensors of the subgraph, at first the tensors of the model.
        address_of_owner: function that returns the address that represents a tensor's delegate.

    Attributes:
        address: address of the first struct.
    """

    def __init__(
        self, tensors: Sequence[Tensor], address_of_owner: Callable[[object | None], int]
    ) -> None:
        self._capacity = len(tensors) + HEADROOM
        self._array = np.zeros(self._capacity * SIZE, np.uint8)  # unused pages cost no memory
        self.address: int = self._array.ctypes.data
        self.owner = address_of_owner
        self._num_declared = len(tensors)
        self._structs: list[TensorStruct] = []

    def __len__(self) -> int:
        return len(self._structs)

    def __getitem__(self, index: int) -> TensorStruct:
        return self._structs[index]

    def __del__(self) -> None:
        self._drop_from(0)

    def address_of(self, index: int) -> int:
        """Return the address of the struct of tensor *index*."""
        return self.address + index * SIZE

    def at(self, address: int | None) -> TensorStruct:
        """Return the tensor struct at an address that a delegate has passed.

        Raises:
            OperatorError: there is no tensor struct at the address.
        """
        index, rest = divmod((address or 0) - self.address, SIZE)
        if rest or not 0 <= index < len(self._structs):
            raise OperatorError(f"{address or 0:#x} is not the address of a tensor")
        return self._structs[index]

    def write(self, tensors: Sequence[Tensor]) -> None:
        """Write the present state of all tensors; data pointers are null without planned memory.

        Raises:
            OperatorError: delegates have added more tensors than there is room for.
        """
        if len(tensors) > self._capacity:
            raise OperatorError(
                f"the subgraph has {len(tensors)} tensors now; delegates may add {HEADROOM}"
            )
        self._drop_from(len(tensors))
        for index, tensor in enumerate(tensors):
            found = self._struct_of(index, tensor)
            found.write(self.owner(tensor.delegate))
            if found.is_added or tensor.is_constant_or_persistent:
                found.write_data()
            else:
                found.write_no_data()

    def _struct_of(self, index: int, tensor: Tensor) -> TensorStruct:
        is_new = index == len(self._structs)
        if is_new or self._structs[index].tensor is not tensor:
            self._drop_from(index)
            is_added = index >= self._num_declared
            self._structs.append(TensorStruct(self.address_of(index), tensor, is_added=is_added))
        return self._structs[index]

    def _drop_from(self, first: int) -> None:
        for struct in self._structs[first:]:
            struct.release()
        del self._structs[first:]
