"""Graph inputs that have a value in the file, and get another.

Source:
    InterpreterWrapper::SetTensor, tflite/python/interpreter_wrapper/interpreter_wrapper.cc, writes
    into the file's bytes; what a kernel has made of them while preparing does not follow there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike, NDArray

from delegraph.operators.tensor import Tensor
from delegraph.runtime.tensor_access import write_tensor


def write_constant(tensor: Tensor, value: ArrayLike, exchange: Callable[[Any], None]) -> None:
    """Change the value of a constant tensor in memory; the model file stays unchanged.

    Nodes and delegates may have packed, folded or compiled the value they saw. So a value that is
    not the present one lets all of them prepare again, as if the file had it.

    Args:
        tensor: the constant.
        value: the same shape and dtype.
        exchange: gives the tensor an array, and lets all prepare again.

    Raises:
        ArgumentError: another dtype or shape.
        DelegateError, NodeError: somebody refuses the value; all is as it was before.
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
    """Array that the tensor is about to hold."""
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
