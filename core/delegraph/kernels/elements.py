"""Moving elements between tensors, whatever their type: plain, packed 4-bit, or sharing memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.dtypes import pack, unpack
from delegraph.kernels.registration import Eval
from delegraph.kernels.tensor import Tensor

Move = Callable[[NDArray[Any], NDArray[Any]], object]
"""Fills its second argument, an array of the output's shape, from its first."""


def values_of(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor's elements: its data, or a new int8 array when they are packed."""
    data: NDArray[Any] = tensor.data
    return unpack(data, tensor.type, tensor.shape) if tensor.is_packed else data


def on_elements(x: Tensor, y: Tensor, move: Move) -> Eval:
    """Return the eval that calls *move* on the elements of *x* and *y*, unpacked where needed."""
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
    """Return the eval that gives *y* the bytes of *x*, without work where both share memory.

    Whether they share is looked up only when one of the arrays is another object than last time.

    Source:
        The pointer comparison in ``Eval`` of tflite/kernels/reshape.cc.
    """
    source: NDArray[Any] | None = None
    target: NDArray[Any] | None = None
    destination: NDArray[Any] | None = None

    def run() -> None:
        nonlocal source, target, destination
        if x.data is not source or y.data is not target:
            source, target = x.data, y.data
            destination = None if address(x.data) == address(y.data) else seen_as(y.data, x.data)
        if destination is not None:
            np.copyto(destination, x.data)

    return run


def address(array: NDArray[Any]) -> int:
    """Return where the first byte of *array* is."""
    return int(array.__array_interface__["data"][0])


def seen_as(array: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    """Return a view of the contiguous *array* with the shape and dtype of *like*."""
    return array.reshape(-1).view(like.dtype).reshape(like.shape)
