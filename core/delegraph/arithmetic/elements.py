"""Moves elements between tensors of any type: plain, packed 4-bit, or in shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from delegraph.graph.dtypes import pack, unpack
from delegraph.operators.registration import Eval
from delegraph.operators.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

Move: TypeAlias = "Callable[[NDArray[Any], NDArray[Any]], object]"
"""Function that fills its second argument, an output's elements, from its first."""


def values_of(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor's elements: its data, or a new int8 array if they are packed."""
    data: NDArray[Any] = tensor.data
    return unpack(data, tensor.type, tensor.shape) if tensor.is_packed else data


def on_elements(x: Tensor, y: Tensor, move: Move) -> Eval:
    """Return the evaluation that calls *move* on the elements of *x* and *y*.

    Elements of 2 or 4 bits are unpacked to int8 before, and results packed afterwards.

    Args:
        x: input.
        y: output.
        move: function of two arrays that writes the second array.
    """
    if not x.is_packed:

        def move_plain() -> None:
            move(x.data, y.data)

        return move_plain

    def move_packed() -> None:
        values = np.empty(y.shape, y.dtype)
        move(values_of(x), values)
        y.data[...] = pack(values, y.type)

    return move_packed


def forward(x: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that copies the bytes of *x* to *y*, unless they share memory.

    Source:
        The pointer comparison in ``Eval`` of tflite/kernels/reshape.cc, which ``np.copyto`` makes,
        too.
    """
    target: Any = None  # the array of which destination is a view
    destination: Any = None

    def run() -> None:
        nonlocal target, destination
        if y.data is not target:
            target, destination = y.data, seen_as(y.data, x.data)
        np.copyto(destination, x.data)

    return run


def seen_as(array: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    """Return a view of the contiguous *array* with the shape and dtype of the array *like*."""
    return array.reshape(-1).view(like.dtype).reshape(like.shape)
