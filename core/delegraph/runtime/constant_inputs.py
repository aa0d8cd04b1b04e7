"""Gives another value to graph inputs that are constants in the model file.

Source:
    InterpreterWrapper::SetTensor, tflite/python/interpreter_wrapper/interpreter_wrapper.cc. It
    writes into the file's bytes, and kernels that have used the old value in prepare keep using it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike, NDArray

from delegraph.operators.tensor import Tensor
from delegraph.runtime.tensor_access import write_tensor


def write_constant(tensor: Tensor, value: ArrayLike, exchange: Callable[[Any], None]) -> None:
    """Change the value of a constant tensor in memory; the model file stays unchanged.

    Nodes and delegates may have packed, folded or compiled the old value. So if the new value
    differs, all of them are prepared again, as if the file held it.

    Args:
        tensor: the constant.
        value: new value, of the same shape and dtype.
        exchange: function that sets the array of a tensor and prepares all nodes again.

    Raises:
        ArgumentError: the dtype or the shape differs.
        DelegateError, NodeError: a delegate or a node rejects the value; the tensor keeps its old
            value.
    """
    before, after = tensor.data, _written(tensor, value)
    if _are_same(before, after):
        return
    try:
        exchange(after)
    except BaseException:
        exchange(before)
        raise


def _written(tensor: Tensor, value: ArrayLike) -> NDArray[Any]:
    """Return *value* as an array of the tensor's shape and dtype, which becomes its value."""
    before = tensor.data
    tensor.data = before.copy()
    try:
        write_tensor(tensor, value)
        after: NDArray[Any] = tensor.data
    finally:
        tensor.data = before
    after.flags.writeable = False
    return after


def _are_same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return a.tolist() == b.tolist() if a.dtype.hasobject else a.tobytes() == b.tobytes()
