"""Moves between parts of tensors, planned with array views and run by one kernel.

A :class:`Part` is selected by NumPy indexing of a placeholder, an array of the tensor's shape
without memory. Address and strides of the view give the places of the elements; values are never
read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import DTypeLike, NDArray

from delegraph import Tensor
from delegraph.errors import OperatorError
from delegraph_numba_cpu.instructions.memory import report
from delegraph_numba_cpu.instructions.moves import COPY, FILL, GATHER, NEST, PICK, UPDATE
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import Address, Memory, ProgramBuilder

BYTES_A_NANOSECOND = 20
"""Approximate number of bytes that are moved in a nanosecond."""

ROW_BYTES = 32
"""Number of bytes whose copying takes as long as beginning a row."""

SQUARE_ROWS = 64
"""Number of rows that are transposed together: a cache line of bytes."""


@dataclass(frozen=True, slots=True)
class Part:
    """Elements of a tensor, selected by a view of a placeholder array of the tensor's shape.

    The view's strides and its offset in the placeholder give the places of the elements in memory.

    Attributes:
        memory: the tensor's memory.
        array: a view of the placeholder, with the selected elements.
        origin: address of the placeholder.
    """

    memory: Memory
    array: NDArray[Any]
    origin: int

    @classmethod
    def of(cls, builder: ProgramBuilder, tensor: Tensor) -> Part:
        """Return a part that has all elements of a tensor."""
        array = placeholder(tensor.shape, tensor.dtype)
        return cls(builder.tensor(tensor.index), array, _address(array))

    @classmethod
    def scratch(cls, builder: ProgramBuilder, shape: tuple[int, ...], dtype: DTypeLike) -> Part:
        """Return a part that stands for new scratch memory with the given shape and dtype."""
        array = placeholder(shape, dtype)
        return cls(builder.scratch(array.nbytes), array, _address(array))

    def seen(self, array: NDArray[Any]) -> Part:
        """Return the part that *array*, a view of ``self.array``, selects."""
        return Part(self.memory, array, self.origin)

    def __getitem__(self, index: Any) -> Part:
        return self.seen(self.array[index])

    @property
    def start(self) -> Address:
        """Address of the first element."""
        return self.memory + (_address(self.array) - self.origin)


def placeholder(shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of this shape and dtype without memory; its elements must not be accessed."""
    element = np.empty((), dtype)
    strides = [element.itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return as_strided(element, shape, strides)


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


class Loop(NamedTuple):
    """A loop of a loop nest: number of steps, and byte strides in source and target."""

    steps: int
    source: int
    target: int


def share_or_copy(builder: ProgramBuilder, x: Tensor, y: Tensor) -> None:
    """Let a tensor share the memory of another with the same bytes, or copy it where it cannot.

    A variable is copied: it may be written again before the last reader of *y* is done.

    Args:
        builder: builder of the program, to which the copy is added.
        x: the tensor that is read.
        y: the tensor with the same bytes, maybe of another shape.
    """
    if x.is_variable or not builder.alias(y.index, x.index):
        source = Part.of(builder, x)
        move(builder, source.seen(source.array.reshape(y.shape)), Part.of(builder, y))


def move(builder: ProgramBuilder, source: Part, target: Part) -> None:
    """Add to the program a kernel call that copies each element to the same index of another part.

    Args:
        builder: builder of the program, to which the kernel call is added.
        source: elements that are read.
        target: elements that are written.

    Raises:
        OperatorError: the shapes or the element sizes differ.
    """
    _check_alike(source.array, target.array)
    if not source.array.size:
        return
    size = source.array.nbytes
    loops, unit = nest_of(
        source.array.shape, source.array.strides, target.array.strides, source.array.itemsize
    )
    if not loops or loops == [Loop(size // unit, unit, unit)]:
        tiles = builder.tiles(size / BYTES_A_NANOSECOND, size)
        builder.emit(COPY, tiles, source=source.start, target=target.start, bytes=size)
        return
    words, grain = _words(builder, loops, unit), 1
    if len(loops) > 1 and loops[-2].source == loops[-1].target == unit:  # the kernel transposes
        grain = min(loops[-2].steps, SQUARE_ROWS)
    tiles = tiles_for(builder, size, -(-words["rows"] // grain))
    builder.emit(NEST, tiles, source=source.start, target=target.start, grain=grain, **words)


def update(builder: ProgramBuilder, source: Part, target: Part, starts: Tensor) -> None:
    """Add a kernel call that copies a block into a larger part, at a start known at run time.

    Args:
        builder: builder of the program.
        source: the block; it is not empty, and no larger than *target* along any axis.
        target: the updated part, of the same rank, at least 1.
        starts: tensor with the start on each axis; starts are clamped so that the block lies
            inside.
    """
    x, y = source.array, target.array
    loops, unit = nest_of(x.shape, x.strides, y.strides, x.itemsize)
    room = [size - part for size, part in zip(y.shape, x.shape, strict=True)]
    words = _words(builder, loops, unit)
    builder.emit(
        UPDATE,
        tiles_for(builder, x.nbytes, words["rows"]),
        source=source.start,
        target=target.start,
        starts=builder.tensor(starts.index),
        index_bytes=starts.dtype.itemsize,
        limits=builder.constant(np.array([room, y.strides], np.int64).T.copy()),
        rank=y.ndim,
        **words,
    )


def gather(
    call: Call,
    builder: ProgramBuilder,
    places: Sequence[tuple[int, int]],
    tuples: int,
    run: int,
    slices: int = 1,
    slabs: int = 1,
    slab: int = 0,
) -> None:
    """Add a kernel call that copies slices of input 0, at positions that input 1 gives at run time.

    Args:
        call: the node that is turned into kernel calls.
        builder: builder of the program.
        places: for each element of a tuple, the number of positions of its axis, and the bytes
            between positions.
        tuples: number of tuples of positions for each slice of the input.
        run: number of bytes that are copied for a tuple.
        slices: number of consecutive slices that share their tuples.
        slabs: number of groups of *slices* slices; each group has tuples of its own.
        slab: number of bytes from one slice to the next.
    """
    rows = slabs * slices * tuples
    if not rows:
        return
    x, positions, y = call.input(0), call.input(1), call.output()
    builder.emit(
        GATHER,
        tiles_for(builder, y.bytes, rows),
        source=builder.table(x),
        target=builder.tensor(y.index),
        positions=builder.tensor(positions.index),
        index_bytes=positions.dtype.itemsize,
        limits=builder.constant(np.array([*places, (0, 0)], np.int64)),
        depth=len(places),
        tuples=tuples,
        slices=slices,
        slab=slab,
        run=run,
        rows=rows,
        report=report(),
        wrong=0,
        among=0,
    )


def _check_alike(source: NDArray[Any], target: NDArray[Any]) -> None:
    if (source.shape, source.itemsize) != (target.shape, target.itemsize):
        raise OperatorError(
            f"{list(source.shape)} elements of {source.itemsize} bytes "
            f"cannot move to {list(target.shape)} elements of {target.itemsize}"
        )


def fill(builder: ProgramBuilder, target: Part, value: NDArray[Any]) -> None:
    """Add to the program a kernel call that stores one value in each element of a part.

    Args:
        builder: builder of the program, to which the kernel call is added.
        target: elements that are written.
        value: scalar array with the dtype of *target*.
    """
    if not target.array.size:
        return
    array = target.array
    loops, unit = nest_of(array.shape, array.strides, array.strides, array.itemsize)
    several = np.full(unit // array.itemsize, value)
    bits = int(several.view(f"i{unit}")[0])
    words = _words(builder, loops, unit)
    tiles = tiles_for(builder, array.nbytes, words["rows"])
    builder.emit(FILL, tiles, target=target.start, value=bits, **words)


def _words(builder: ProgramBuilder, loops: list[Loop], unit: int) -> dict[str, Any]:
    """Return the operands, by name, that all kernels with nested *loops* have in common.

    The outermost loop is the first; each step moves *unit* bytes.
    """
    loops = [Loop(1, 0, 0)] * (2 - len(loops)) + loops
    return {
        "loops": builder.constant(np.array(loops, np.int64)),
        "depth": len(loops),
        "rows": math.prod(loop.steps for loop in loops[:-1]),
        "unit": unit,
    }


def tiles_for(builder: ProgramBuilder, size: int, rows: int) -> int:
    """Return the number of tiles (parts for threads) into which a copy is divided.

    Args:
        builder: builder of the program, with the number of workers.
        size: number of bytes of all rows.
        rows: number of rows, which is the largest number of tiles.
    """
    return builder.tiles(max(size, ROW_BYTES * rows) / BYTES_A_NANOSECOND, rows)


def nest_of(
    shape: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...], unit: int
) -> tuple[list[Loop], int]:
    """Return the fewest nested loops that copy all elements, and the bytes copied at each step.

    *shape* is that of both arrays, *source* and *target* are their strides in bytes, and *unit* is
    the size of an element. The loops follow the target in the order of its addresses. If the
    innermost loop jumps in the source, the loop around it does not jump, so that the kernel can
    transpose.

    >>> nest_of((2, 3, 4), (48, 16, 4), (48, 16, 4), 4)
    ([Loop(steps=24, source=4, target=4)], 4)
    >>> nest_of((5, 7), (4, 20), (28, 4), 4)  # of a transposed [7, 5]
    ([Loop(steps=5, source=4, target=28), Loop(steps=7, source=20, target=4)], 4)
    >>> nest_of((9, 2), (6, 1), (4, 1), 1)  # pairs of bytes
    ([Loop(steps=9, source=6, target=4)], 2)
    """
    loops = [Loop(*each) for each in zip(shape, source, target, strict=True) if each[0] > 1]
    loops.sort(key=lambda loop: -abs(loop.target))
    merged: list[Loop] = []
    for loop in loops:
        if merged and merged[-1][1:] == (loop.steps * loop.source, loop.steps * loop.target):
            loop = loop._replace(steps=loop.steps * merged.pop().steps)
        merged.append(loop)
    if len(merged) > 1 and merged[-1][1:] == (unit, unit) and merged[-1].steps * unit in (2, 4, 8):
        unit *= merged.pop().steps
    if len(merged) > 2 and merged[-1].target == unit != merged[-1].source:
        for i, loop in enumerate(merged[:-1]):
            if loop.source == unit:
                merged.insert(len(merged) - 2, merged.pop(i))
                break
    return merged, unit


Offsets = NDArray[np.int64]


def pick(call: Call, builder: ProgramBuilder, outer: Offsets, inner: Offsets, run: int) -> None:
    """Add a kernel call that copies equally long pieces of the first input to the output, in order.

    Each piece (*run*) begins at the sum of two offsets, one from each of two lists.

    Args:
        call: the node that is turned into kernel calls.
        builder: builder of the program.
        outer: byte offsets, ``[A]``.
        inner: byte offsets, ``[B]``; run ``a * B + b`` of the output is at ``outer[a] + inner[b]``
            in the input.
        run: number of bytes of a piece.
    """
    rows = len(outer) * len(inner)
    if not rows or not run:
        return
    y = call.output()
    builder.emit(
        PICK,
        tiles_for(builder, y.bytes, rows),
        source=builder.tensor(call.node.inputs[0]),
        target=builder.tensor(y.index),
        outer=builder.constant(outer.astype(np.int64)),
        inner=len(inner),
        offsets=builder.constant(inner.astype(np.int64)),
        run=run,
        rows=rows,
    )
