"""The Python API of the wheel ``tflite-micro``; a program only has to change its import.

::

    from delegraph.micro import runtime  # was: from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_file("model.tflite")
    interpreter.set_input(x, 0)
    interpreter.invoke()
    y = interpreter.get_output(0)

Names are those of the wheel, including ``intrepreter_config`` and ``GetTensor``. Errors are raised
where the wheel would crash the process. New code should use
:class:`~delegraph.micro.MicroInterpreter`.

Source:
    python/tflite_micro/runtime.py and interpreter_wrapper.cc of tflite-micro.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delegraph.bundles.opening import split_address
from delegraph.errors import (
    ArenaTooSmallError,
    ArgumentError,
    MicroRuntimeError,
    ModelError,
    StateError,
    TensorIndexError,
)
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.graph.external_buffers import self_contained
from delegraph.graph.loader import load_model, parse_model
from delegraph.micro.allocator import MicroAllocator
from delegraph.micro.interpreter import MicroInterpreter
from delegraph.micro.recording_allocator import RecordingMicroAllocator
from delegraph.micro.registerers import registered_ops
from delegraph.micro.targets import TARGET_64
from delegraph.operators.tensor import Tensor

_TIMES_MODEL = 10
"""Size of the arena as a multiple of the model file's size, if no size is given."""


class InterpreterConfig(Enum):
    """Whether the interpreter records its allocations or preserves the values of all tensors.

    Attributes:
        kAllocationRecording: the interpreter records the purpose of its arena's memory.
        kPreserveAllTensors: each tensor keeps its value, so that ``GetTensor`` can read it.
    """

    kAllocationRecording = 0
    kPreserveAllTensors = 1


_PRESERVES = {
    InterpreterConfig.kAllocationRecording: False,
    InterpreterConfig.kPreserveAllTensors: True,
}


class Interpreter:
    """Runs a model in its own arena, with the structure sizes of a 64-bit host.

    Args:
        model_data: the content of a ``.tflite`` file.
        custom_op_registerers: names ``"package.module:function"``; each function is called with an
            :class:`~delegraph.micro.registerers.OpsResolver` and adds its operators. A function
            that returns False has failed. The wheel's own C++ registerers cannot be used here.
        arena_size: size of the arena in bytes; None means ten times the model's size.
        intrepreter_config: whether to record allocations or to keep all tensors.
        alt_decompression_memory_size: without effect, because Delegraph lacks the operators that
            use it.

    Raises:
        ArgumentError: there is no model, or the registerers are not a list of texts.
        MalformedModelError: the model is damaged.
        MicroRuntimeError: a registerer fails, the arena is too small, or an operator has no kernel
            or its kernel rejects a node.
        TypeError: the arena size is not an integer >= 0.
    """

    def __init__(
        self,
        model_data: bytes,
        custom_op_registerers: Sequence[str],
        arena_size: int | None,
        intrepreter_config: InterpreterConfig = InterpreterConfig.kAllocationRecording,
        alt_decompression_memory_size: int = 0,
    ) -> None:
        if model_data is None:
            raise ArgumentError("Model must not be None")
        if not isinstance(custom_op_registerers, list) or not all(
            isinstance(name, str) for name in custom_op_registerers
        ):
            raise ArgumentError("Custom ops registerers must be a list of strings")
        default = len(model_data) * _TIMES_MODEL
        size = default if arena_size is None else _size(arena_size)
        preserves = _PRESERVES[intrepreter_config]
        custom_ops = registered_ops(custom_op_registerers)
        model = parse_model(bytes(model_data))
        try:
            self._allocator = _allocator(bytearray(size), preserves)
            self._interpreter = MicroInterpreter(model, self._allocator, custom_ops=custom_ops)
            self._interpreter.allocate_tensors()
        except (ArenaTooSmallError, ModelError, StateError) as error:
            raise MicroRuntimeError(f"TFLM failed to allocate tensors: {error}") from error

    @classmethod
    def from_file(
        cls,
        model_path: str | os.PathLike[str],
        custom_op_registerers: list[str] | None = None,
        arena_size: int | None = None,
        intrepreter_config: InterpreterConfig = InterpreterConfig.kAllocationRecording,
        alt_decompression_memory_size: int = 0,
    ) -> Interpreter:
        """Return an interpreter for a model file; for the other arguments, see the class.

        Raises:
            ArgumentError: the file does not exist.
            ModelError: the bundle of ``FILE#SECTION`` lacks the model.
        """
        if model_path is None or not os.path.isfile(split_address(os.fspath(model_path))[0]):
            raise ArgumentError(f"Invalid model file path: {model_path!r}")
        return cls.from_bytes(
            self_contained(load_model(model_path)).tobytes(),
            custom_op_registerers,
            arena_size,
            intrepreter_config,
            alt_decompression_memory_size,
        )

    @classmethod
    def from_bytes(
        cls,
        model_data: bytes,
        custom_op_registerers: list[str] | None = None,
        arena_size: int | None = None,
        intrepreter_config: InterpreterConfig = InterpreterConfig.kAllocationRecording,
        alt_decompression_memory_size: int = 0,
    ) -> Interpreter:
        """Return an interpreter for a model's bytes; for the other arguments, see the class."""
        return cls(
            model_data,
            [] if custom_op_registerers is None else custom_op_registerers,
            arena_size,
            intrepreter_config,
            alt_decompression_memory_size,
        )

    def print_allocations(self) -> None:
        """Print TFLM's report on the use of the arena to standard error.

        Raises:
            ArgumentError: the configuration is not ``kAllocationRecording``.
        """
        if not isinstance(self._allocator, RecordingMicroAllocator):
            raise ArgumentError("Cannot print allocations as they were not recorded")
        print(self._allocator.report(), file=sys.stderr)

    def invoke(self) -> int:
        """Run the model and return 0.

        Raises:
            MicroRuntimeError: a node fails.
        """
        try:
            self._interpreter.invoke()
        except ModelError as error:
            raise MicroRuntimeError(f"Interpreter invocation failed: {error}") from error
        return 0

    def reset(self) -> int:
        """Reset variables and operator state to their initial values; return 0."""
        self._interpreter.reset_variables()
        return 0

    def set_input(self, input_data: ArrayLike, index: int) -> None:
        """Copy an array into an input, without any conversion.

        Args:
            input_data: an array of the input's type and shape, or data that NumPy converts to it.
            index: index of the input among the model's inputs.

        Raises:
            ArgumentError: data or index is missing, or type or shape differ.
            TensorIndexError: the input does not exist.
        """
        if input_data is None:
            raise ArgumentError("Input data must not be None")
        number = _index(index)
        array = _array(input_data)
        tensor = self._end("input", number)
        _check_fits(array, tensor, number)
        np.copyto(tensor.data, array)

    def get_output(self, index: int) -> Any:
        """Return a copy of an output, or a NumPy scalar if it has no dimensions.

        Raises:
            ArgumentError: the index is missing, or the output is no array.
            TensorIndexError: the output does not exist.
        """
        return _copied(self._end("output", _index(index)))

    def GetTensor(self, tensor_index: int, subgraph_index: int) -> dict[str, Any]:
        """Return ``dtype``, ``shape`` and a copy of a tensor's value as ``tensor_data``.

        The tensor has the index *tensor_index* in subgraph *subgraph_index*.

        Raises:
            MicroRuntimeError: the configuration is not ``kPreserveAllTensors``.
            TensorIndexError: the tensor does not exist.
        """
        numbers = operator.index(tensor_index), operator.index(subgraph_index)
        if not self._interpreter.preserves_all_tensors:
            raise MicroRuntimeError(
                "TFLM only supports GetTensor() when using a python interpreter with the "
                "InterpreterConfig.kPeserverAllTensors interpreter_config"
            )
        try:
            tensor = self._interpreter.tensor(*numbers)
        except ArgumentError as error:
            raise TensorIndexError(f"{_OUT_OF_BOUND} ({error})") from error
        shape = np.array(tensor.shape, np.int32)
        return {"dtype": tensor.dtype.type, "shape": shape, "tensor_data": _copied(tensor)}

    def get_input_details(self, index: int) -> dict[str, Any]:
        """Return ``dtype``, ``shape`` and ``quantization_parameters`` of an input.

        Raises:
            ArgumentError: the index is missing, or the input is no array.
            TensorIndexError: the input does not exist.
        """
        return _details(self._end("input", _index(index)))

    def get_output_details(self, index: int) -> dict[str, Any]:
        """Return ``dtype``, ``shape`` and ``quantization_parameters`` of an output.

        Raises:
            ArgumentError: the index is missing, or the output is no array.
            TensorIndexError: the output does not exist.
        """
        return _details(self._end("output", _index(index)))

    def _end(self, side: Literal["input", "output"], index: int) -> Tensor:
        """Return input or output *index* of the model; *side* is ``"input"`` or ``"output"``."""
        interpreter = self._interpreter
        count = interpreter.inputs_size if side == "input" else interpreter.outputs_size
        if index >= count:
            raise TensorIndexError(f"{_OUT_OF_BOUND} ({side} {index}, there are {count})")
        return _checked(interpreter.input(index) if side == "input" else interpreter.output(index))


_OUT_OF_BOUND = "Tensor is out of bound, please check tensor index."


def _size(arena_size: Any) -> int:
    size = operator.index(arena_size)
    if size < 0:
        raise TypeError(f"arena_size is {size}, expected a number of bytes from 0 up")
    return size


def _allocator(arena: bytearray, preserves_all_tensors: bool) -> MicroAllocator:
    if preserves_all_tensors:
        return MicroAllocator.create(arena, planner="linear", target=TARGET_64)
    return RecordingMicroAllocator.create(arena, target=TARGET_64)


# -- tensors ---------------------------------------------------------------------------------------


def _index(index: int | None) -> int:
    if index is None or index < 0:
        raise ArgumentError("Index must be a non-negative integer")
    return operator.index(index)


def _array(data: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(data)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"TFLM cannot convert input to PyArray: {error}") from error


def _checked(tensor: Tensor) -> Tensor:
    """Return *tensor*, or raise an error if it has no array."""
    if tensor.type in OBJECT_TYPES:
        raise ArgumentError(
            "TFLM doesn't support strings, resource variables, or variants as outputs."
        )
    return tensor


def _copied(tensor: Tensor) -> Any:
    """Return a copy of a tensor's value, or a NumPy scalar if it has no dimensions."""
    data = _checked(tensor).data
    return data.copy() if data.ndim else data[()]


def _check_fits(array: NDArray[Any], tensor: Tensor, index: int) -> None:
    """Check that the array's type, rank and sizes, in this order, are those of the tensor.

    *index* is the number of the input, for the error.
    """
    found, expected = _type_name(array.dtype), tensor.type.name
    where = f"for input {index}"
    if found != expected:
        raise ArgumentError(
            f"Cannot set tensor: Got value of type {found} but expected type {expected} {where}"
        )
    mismatch = "Cannot set tensor: Dimension mismatch. Got"
    if array.ndim != len(tensor.shape):
        raise ArgumentError(f"{mismatch} {array.ndim} but expected {len(tensor.shape)} {where}")
    for axis, (got, size) in enumerate(zip(array.shape, tensor.shape, strict=True)):
        if got != size:
            raise ArgumentError(
                f"{mismatch} {got} but expected {size} for dimension {axis} of input {index}"
            )


def _type_name(dtype: np.dtype[Any]) -> str:
    """Return TFLM's name of *dtype*; ``NOTYPE`` for a type that TFLM does not have."""
    if dtype.kind in "OSU":
        return "STRING"
    return dtype.name.upper() if dtype.name in _KNOWN else "NOTYPE"


_KNOWN = frozenset(
    [
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    ]
)


def _details(tensor: Tensor) -> dict[str, Any]:
    quantization = tensor.quantization
    scales: ArrayLike = () if quantization is None else quantization.scales
    zero_points: ArrayLike = () if quantization is None else quantization.zero_points
    return {
        "dtype": tensor.dtype.type,
        "shape": np.array(tensor.shape, np.int32),
        "quantization_parameters": {
            "scales": np.array(scales, np.float32),
            "zero_points": np.array(zero_points, np.int32),
            "quantized_dimension": 0 if quantization is None else quantization.quantized_dimension,
        },
    }
