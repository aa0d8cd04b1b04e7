"""Views of tensors through the TRANSPOSE and RESHAPE nodes between them and their only readers.

A kernel that takes strides can read such a view, so that TRANSPOSE and RESHAPE need not copy.
Arrays stand for tensors, as in ``moves.py``. A view's strides give the places of its elements;
values are never read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from delegraph import Tensor
from delegraph.arithmetic import integers
from delegraph_numba_cpu.lowering.fusion import Partition
from delegraph_numba_cpu.lowering.moves.moves import placeholder
from delegraph_numba_cpu.lowering.registry import Call

Array = NDArray[Any]

RESHAPES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")


@dataclass(frozen=True, slots=True)
class SeenTensor:
    """A stored tensor, and its elements in the shape and order of another tensor.

    Attributes:
        stored: the tensor that has memory.
        array: view of the stored tensor in the shape of the other tensor.
        members: positions of the nodes between the two tensors.
    """

    stored: Tensor
    array: Array
    members: tuple[int, ...]


def before(partition: Partition, tensor: Tensor) -> Iterator[SeenTensor]:
    """Yield the stored tensors that a kernel can read, by strides, in place of *tensor*.

    TRANSPOSE and RESHAPE nodes before *tensor* are then not computed. The farthest tensor comes
    first, *tensor* itself last.

    Args:
        partition: the nodes.
        tensor: the tensor that a kernel needs.
    """
    steps: list[tuple[int, Call]] = []
    found = tensor
    while partition.only_reader(found.index) is not None:
        position = partition.maker(found.index)
        if position is None or not _is_move(partition.calls[position]):
            break
        call = partition.calls[position]
        steps.append((position, call))
        found = call.input(0)
    yield from _seen(tensor, steps, lambda call: call.input(0), _moved)


def after(partition: Partition, tensor: Tensor) -> Iterator[SeenTensor]:
    """Yield the stored tensors that a kernel can write, by strides, in place of *tensor*.

    TRANSPOSE and RESHAPE nodes after *tensor* are then not computed. The farthest tensor comes
    first, *tensor* itself last.

    Args:
        partition: the nodes.
        tensor: the tensor that a kernel computes.
    """
    steps: list[tuple[int, Call]] = []
    found = tensor
    while (position := partition.only_reader(found.index)) is not None:
        call = partition.calls[position]
        if not _is_move(call) or call.node.inputs[0] != found.index:
            break
        steps.append((position, call))
        found = call.output()
    yield from _seen(tensor, steps, Call.output, _moved_back)


def _seen(
    tensor: Tensor,
    steps: Sequence[tuple[int, Call]],
    stored_by: Callable[[Call], Tensor],
    move: Callable[[Call, Array], Array | None],
) -> Iterator[SeenTensor]:
    """Yield *tensor* as views of the stored tensors beyond TRANSPOSE and RESHAPE nodes.

    *steps* are these nodes, the nearest first. *stored_by* returns the tensor on the far side of a
    node. *move* returns the view on its near side, given that on the far side; None if strides
    cannot express it.
    """
    for count in range(len(steps), 0, -1):
        if steps[count - 1][1].name != "TRANSPOSE":
            continue  # elements are in the same places without the reshape
        stored = stored_by(steps[count - 1][1])
        array: Array | None = placeholder(stored.shape, stored.dtype)
        for _, call in reversed(steps[:count]):
            array = None if array is None else move(call, array)
        if array is not None:
            yield SeenTensor(stored, array, tuple(position for position, _ in steps[:count]))
    yield SeenTensor(tensor, placeholder(tensor.shape, tensor.dtype), ())


def _is_move(call: Call) -> bool:
    return call.name == "TRANSPOSE" or call.name in RESHAPES


def _moved(call: Call, array: Array) -> Array | None:
    """Return a view of a node's output in the memory of *array*, its input; None if impossible."""
    if call.name == "TRANSPOSE":
        return array.transpose(integers(call.input(1)))
    return reshaped(array, call.output().shape)


def _moved_back(call: Call, array: Array) -> Array | None:
    """Return a view of a node's input in the memory of *array*, its output; None if impossible."""
    if call.name == "TRANSPOSE":
        return array.transpose(np.argsort(integers(call.input(1))))
    return reshaped(array, call.input(0).shape)


def reshaped(array: Array, shape: Sequence[int]) -> Array | None:
    """Return a view of *array* in another shape; None if strides cannot express it.

    >>> x = np.zeros((3, 4, 5), np.int8)
    >>> reshaped(x.transpose(1, 0, 2), (2, 2, 15)) is None
    True
    >>> reshaped(x.transpose(2, 0, 1), (5, 6, 2)).strides
    (1, 10, 5)
    """
    levels = merged_levels(array.shape, array.strides)
    size, step = 1, array.itemsize
    strides = []
    for length in reversed(shape):
        if size == 1 and length > 1 and levels:
            size, step = levels.pop()
        if size % length:
            return None
        strides.append(step)
        size, step = size // length, step * length
    return as_strided(array, tuple(shape), strides[::-1])


def merged_levels(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Return sizes and strides of dimensions, merged to as few as possible, outermost first.

    >>> merged_levels((2, 3, 1, 4), (48, 16, 16, 4))
    [(24, 4)]
    >>> merged_levels((2, 3, 4), (0, 0, 4))
    [(6, 0), (4, 4)]
    """
    levels: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if levels and levels[-1][1] == size * stride:
            size *= levels.pop()[0]
        levels.append((size, stride))
    return levels
