"""``TensorBuffer``: memory for an input or output of compiled models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.compiled_model.host_memory import (
    HostMemory,
    shared_memory,
    supported_dtype,
    type_name,
)
from delegraph.errors import ArgumentError, CompiledModelError

if TYPE_CHECKING:
    from typing import Self  # type: ignore[attr-defined, unused-ignore]  # 3.11; never run on 3.10

    from numpy.typing import DTypeLike, NDArray

    from delegraph.compiled_model.environment import Environment


class TensorBuffer:
    """Memory with an element type and a shape, which compiled models use without copies.

    ``CompiledModel`` makes buffers for its inputs and outputs. Buffers stay valid when the model is
    closed, and may be given to other models.

    Buffers are written and read as float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int32,
    int8, uint8 or bool; values of other types are written and read as bytes, uint8. Bytes are
    copied, and no value is converted. Unlike in the official class, buffers of string tensors
    accept arrays of ``str`` or ``bytes``, and return ``bytes``. If the size of an output is known
    only after the run, its buffer gets that size.

    Args:
        capsule: the ``capsule`` of another buffer, whose memory the new buffer shares.
        environment: environment that the buffer keeps alive.

    Source:
        TensorBuffer, ai_edge_litert/tensor_buffer.py.
    """

    def __init__(self, capsule: Any, environment: Environment | None = None) -> None:
        self._capsule = capsule
        self._environment = environment

    @classmethod
    def create_from_host_memory(cls, data_array: NDArray[Any]) -> Self:
        """Return a buffer that shares the memory of an array, with the shape ``[elements]``.

        An array that is not aligned to 64 bytes is copied.

        Raises:
            ArgumentError: the value is no array, has gaps between its elements, or has the wrong
                dtype.
        """
        array = _checked_array(data_array)
        supported_dtype(array.dtype)
        if not array.flags.c_contiguous:
            raise ArgumentError(
                "data_array must be C-contiguous for zero-copy host-memory binding; "
                "np.ascontiguousarray makes a copy that is"
            )
        return cls(shared_memory(array))

    def write(self, data_array: NDArray[Any]) -> None:
        """Copy the bytes of an array, of any shape, to the start of the buffer.

        Raises:
            ArgumentError: the value is no array, or has the wrong dtype.
            CompiledModelError: the array has more bytes than the buffer, or the buffer is read-only
                or destroyed.
        """
        memory = self._capsule
        if type(memory) is HostMemory and memory.put_again(data_array):
            return
        array = _checked_array(data_array)
        if _holds_strings(memory) and array.dtype.kind in "SUO":
            memory.put_strings(array)
            return
        supported_dtype(array.dtype)
        self._memory("WriteTensorBuffer").put(np.ascontiguousarray(array))

    def read(self, num_elements: Any, output_dtype: DTypeLike) -> NDArray[Any]:
        """Return the first elements of the buffer in a new array.

        Args:
            num_elements: number of elements, or the shape of the result.
            output_dtype: dtype of the result.

        Raises:
            ArgumentError: the dtype is wrong.
            CompiledModelError: the result would have more bytes than the buffer, or the buffer was
                destroyed.
        """
        memory = self._capsule
        if type(memory) is HostMemory:
            found = memory.get_again(num_elements, output_dtype)
            if found is not None:
                return found
        if _holds_strings(memory) and output_dtype in (object, np.object_, bytes, np.bytes_):
            strings: NDArray[Any] = memory.get_strings(num_elements).astype(output_dtype)
            return strings
        supported_dtype(output_dtype)
        return self._memory("ReadTensorToBuffer").get(num_elements, output_dtype)

    def get_tensor_details(self) -> dict[str, Any]:
        """Return ``{"dtype": text, "shape": list of int}``.

        Raises:
            CompiledModelError: the buffer was destroyed.
        """
        memory = self._memory("GetTensorDetails")
        return {"dtype": type_name(memory.type), "shape": list(memory.shape)}

    def destroy(self) -> None:
        """Release the memory; later uses of the buffer, except ``destroy``, raise an error."""
        self._capsule = None
        self._environment = None

    @property
    def capsule(self) -> Any:
        """The memory, which ``TensorBuffer(capsule)`` shares.

        Raises:
            ArgumentError: the buffer is destroyed.
        """
        if self._capsule is None:
            raise ArgumentError("TensorBuffer has been destroyed")
        return self._capsule

    def _memory(self, call: str) -> HostMemory:
        if not isinstance(self._capsule, HostMemory):
            raise CompiledModelError(f"{call}: invalid capsule: the buffer is destroyed")
        return self._capsule


def _holds_strings(memory: Any) -> bool:
    return isinstance(memory, HostMemory) and memory.objects is not None


def _checked_array(value: Any) -> NDArray[Any]:
    if not isinstance(value, np.ndarray):
        kind = type(value).__name__
        raise ArgumentError(f"data_array must be a NumPy array, not {kind}")
    return np.asarray(value)
