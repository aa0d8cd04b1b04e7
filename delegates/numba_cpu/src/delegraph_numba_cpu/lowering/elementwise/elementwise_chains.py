"""Chains of element-wise operations, as one kernel call; see ``instructions/elementwise.py``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Tensor
from delegraph.errors import OperatorError
from delegraph_numba_cpu.instructions import float_word
from delegraph_numba_cpu.instructions.elementwise import (
    CHAIN,
    LARGEST_RANK,
    PARAMETERS,
    RECORD_WORDS,
    SLOTS,
    SOURCES,
    STEP_WORDS,
    Layout,
    Operation,
    Record,
    Step,
)
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import (
    Address,
    Memory,
    ProgramBuilder,
    WorkerScratch,
    aligned,
)

Place = Memory | Address

FEATURES = ("empty", "many-dims", "scalar", "dynamic-shapes")
"""Claimed features of operators of one operand."""

PAIR_FEATURES = ("activation", "broadcast", "computed-weights", *FEATURES)
"""Claimed features of operators of several operands."""

LENGTH = 1024
"""Approximate number of elements on which all steps run before the next elements.

Several vectors of this length fit into the L1 cache.
"""

LONGEST = 4096
"""Largest number of elements at a time, if that number must be a multiple of a source's period."""

_SLOW = {
    **dict.fromkeys((Operation.LOOKUP_PAIR, Operation.LOOKUP_PAIR_BY_POSITION), 1.5),
    **dict.fromkeys((Operation.LOOKUP, Operation.LOOKUP_INT16), 0.5),
    **dict.fromkeys((Operation.EXP, Operation.LOGISTIC, Operation.TANH, Operation.LOG), 0.8),
    Operation.SINE: 2.0,
    **dict.fromkeys((Operation.ELU, Operation.GELU, Operation.GELU_BY_TANH), 1.5),
}
"""Mapping from operations that are much slower than others to their nanoseconds per element."""

_QUICK = 0.06


@dataclass(frozen=True, slots=True)
class Geometry:
    """Broadcast of a tensor to the shape of another tensor.

    Attributes:
        shape: shape of the other tensor, with dimensions merged where possible.
        strides: distance of neighbours in each dimension of *shape*, in elements; 0 where elements
            repeat.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def layout(self) -> int:
        """Layout of a source in memory: direct, periodic or strided, relative to the target.

        It is valid for pieces whose length is a multiple of :attr:`period`.
        """
        if len(self.shape) == 1 and self.strides[0]:
            return Layout.DIRECT
        if len(self.shape) <= 2 and not self.strides[0]:
            return Layout.PERIODIC
        return Layout.STRIDED

    @property
    def period(self) -> int:
        """Number of elements after which a periodic tensor repeats."""
        return self.shape[1] if len(self.shape) == 2 else 1


def geometry(shape: Sequence[int], target: Sequence[int]) -> Geometry:
    """Return the strides by which a tensor is broadcast from *shape* to *target*.

    >>> geometry((3,), (5, 4, 3))
    Geometry(shape=(20, 3), strides=(0, 1))
    >>> geometry((5, 4, 3), (5, 4, 3))
    Geometry(shape=(60,), strides=(1,))

    Raises:
        OperatorError: the shapes do not broadcast.
    """
    padded = (1,) * (len(target) - len(shape)) + tuple(shape)
    if len(shape) > len(target) or any(
        n not in (1, m) for n, m in zip(padded, target, strict=True)
    ):
        raise OperatorError(f"{list(shape)} elements do not repeat to {list(target)}")
    merged: list[tuple[int, int]] = []  # the innermost dimension first
    stride = 1
    for size, length in zip(reversed(padded), reversed(target), strict=True):
        step = stride if size > 1 else 0
        stride *= size
        if length == 1:
            continue
        if merged and step == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * length, merged[-1][1])
        else:
            merged.append((length, step))
    merged = merged or [(1, 1)]
    return Geometry(*(tuple(column) for column in zip(*reversed(merged), strict=True)))


@dataclass(frozen=True, slots=True)
class _Source:
    place: Place
    itemsize: int
    geometry: Geometry


@dataclass(frozen=True, slots=True)
class _Step:
    operation: int
    operands: tuple[int, ...]
    parameters: tuple[float | NDArray[Any], ...]


class Chain:
    """A chain: steps of element-wise operations that one kernel call computes.

    Inputs and results of steps have numbers, which :meth:`source` and :meth:`step` return, and by
    which later steps name their operands. The last step writes the target.

    Args:
        shape: shape of the target, to which sources are broadcast.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self._sources: list[_Source] = []
        self._steps: list[_Step] = []

    def source(self, place: Place, shape: Sequence[int], itemsize: int) -> int:
        """Add an input to the chain, and return the number by which steps name it.

        The same tensor gets the same number.

        Args:
            place: memory of the tensor.
            shape: shape of the tensor.
            itemsize: number of bytes of an element.
        """
        source = _Source(place, itemsize, geometry(shape, self.shape))
        if source not in self._sources:
            self._sources.append(source)
        return self._sources.index(source)

    def step(
        self, operation: int, operands: Sequence[int], *parameters: float | NDArray[Any]
    ) -> int:
        """Add an operation as a step, and return the number by which later steps name its results.

        Args:
            operation: the element-wise operation.
            operands: numbers of its operands, as :meth:`source` and :meth:`step` return them.
            parameters: the operation's parameters: floats, ints, or arrays for tables.
        """
        self._steps.append(_Step(operation, tuple(operands), parameters))
        return SOURCES + len(self._steps) - 1

    def emit(self, builder: ProgramBuilder, target: Place, itemsize: int) -> None:
        """Add to the program the kernel call of this chain; none if there are no elements.

        Args:
            builder: builder of the program.
            target: memory of the result.
            itemsize: number of bytes of an element of the result.
        """
        elements = math.prod(self.shape)
        if not elements:
            return
        code, slots = self._encoded()
        granule = builder.level.vector_bytes
        length, layouts = self._layouts(granule, elements)
        tiles, in_register = self._tiles(builder, -(-elements // length)), length
        if len(self._steps) == 1 and all(layout is Layout.DIRECT for layout in layouts):
            # Registers hold the last elements only, so that a tile need not be cut into pieces.
            length, in_register = -(-elements // (tiles * granule)) * granule, granule
        steps = builder.constant(code)
        widest = max([itemsize, 4, *(source.itemsize for source in self._sources)])
        register_bytes = aligned(in_register * widest) + 1024
        builder.emit(
            CHAIN,
            tiles,
            self._replaceable(layouts, itemsize),
            steps=steps,
            step_count=len(self._steps),
            records=builder.constant(self._records(layouts)),
            source_count=len(self._sources),
            elements=elements,
            length=length,
            scratch=WorkerScratch(8 * SLOTS + slots * register_bytes),
            register_bytes=register_bytes,
            slot_count=slots,
            target=target,
            target_itemsize=itemsize,
            **self._source_words(),
        )

    def _source_words(self) -> dict[str, Any]:
        places = [source.place for source in self._sources]
        return {f"source{i}": places[i] if i < len(places) else 0 for i in range(SOURCES)}

    def _tiles(self, builder: ProgramBuilder, pieces: int) -> int:
        cost = math.prod(self.shape) * sum(_SLOW.get(s.operation, _QUICK) for s in self._steps)
        return builder.tiles(cost, pieces)

    def _replaceable(self, layouts: Sequence[int], itemsize: int) -> tuple[str, ...]:
        """Return the names of the sources whose memory the target may take over.

        *layouts* has the layout of each source; an element of the target has *itemsize* bytes.
        """
        memories = [_memory(source.place) for source in self._sources]
        return tuple(
            f"source{i}"
            for i, source in enumerate(self._sources)
            if layouts[i] == Layout.DIRECT
            and source.itemsize == itemsize
            and memories.count(memories[i]) == 1
        )

    def _layouts(self, granule: int, elements: int) -> tuple[int, list[int]]:
        """Return the number of elements that kernels process at a time, and each source's layout.

        The number is a multiple of *granule*; the target has *elements* elements.
        """
        layouts = [source.geometry.layout for source in self._sources]
        unit, length = granule, 0
        for i, source in enumerate(self._sources):
            if layouts[i] != Layout.PERIODIC:
                continue
            common = math.lcm(unit, source.geometry.period)
            if common <= LONGEST:
                unit = common
            else:
                layouts[i] = Layout.STRIDED
        length = max(min(LENGTH, elements + unit - 1) // unit, 1) * unit
        return length, layouts

    def _records(self, layouts: Sequence[int]) -> NDArray[np.int64]:
        records = np.zeros((max(len(self._sources), 1), RECORD_WORDS), np.int64)
        for record, source, layout in zip(records, self._sources, layouts, strict=False):
            shape, strides = source.geometry.shape, source.geometry.strides
            assert len(shape) <= LARGEST_RANK
            record[Record.LAYOUT] = layout
            record[Record.ITEMSIZE] = source.itemsize
            record[Record.RANK] = len(shape)
            record[Record.SHAPE : Record.SHAPE + len(shape)] = shape
            record[Record.STRIDES : Record.STRIDES + len(shape)] = np.multiply(
                strides, source.itemsize
            )
        return records

    def _encoded(self) -> tuple[NDArray[np.uint8], int]:
        """Return the chain's code for the kernel, and the number of registers that it uses.

        The code is the encoded steps (one element-wise operation each), then lookup tables.
        """
        code = np.zeros((len(self._steps), STEP_WORDS), np.int64)
        slots = self._slots()
        tables: list[NDArray[np.uint8]] = []
        end = code.nbytes
        for row, step, slot in zip(code, self._steps, slots, strict=True):
            row[Step.OPERATION], row[Step.TARGET] = step.operation, slot
            for i, operand in enumerate(step.operands):
                row[Step.A + i] = operand if operand < SOURCES else slots[operand - SOURCES]
            assert len(step.parameters) <= PARAMETERS
            for i, parameter in enumerate(step.parameters):
                if isinstance(parameter, np.ndarray):
                    tables.append(parameter.reshape(-1).view(np.uint8))
                    row[Step.PARAMETER + i] = end
                    end += tables[-1].size
                else:
                    row[Step.PARAMETER + i] = _word(parameter)
        return np.concatenate([code.reshape(-1).view(np.uint8), *tables]), max(slots) + 1

    def _slots(self) -> list[int]:
        """Return the register of each step's results, which is reused after its last reader."""
        first = len(self._sources) + 1  # the first slot after that of the target
        last_use = {}
        for i, step in enumerate(self._steps):
            last_use.update({operand - SOURCES: i for operand in step.operands})
        slots: list[int] = []
        for i in range(len(self._steps) - 1):
            busy = {slots[j] for j in range(i) if last_use.get(j, -1) >= i}
            slots.append(next(s for s in range(first, first + i + 1) if s not in busy))
        return [*slots, first - 1]


def _memory(place: Place) -> Memory:
    return place.memory if isinstance(place, Address) else place


def _word(parameter: float | NDArray[Any]) -> int:
    return parameter if isinstance(parameter, int) else float_word(parameter)  # type: ignore[arg-type]


def emit_operation(
    call: Call,
    builder: ProgramBuilder,
    operation: int,
    parameters: Sequence[float | NDArray[Any]] = (),
    inputs: Sequence[int] | None = None,
) -> None:
    """Add to the program a kernel call that applies one operation to a node's inputs, elementwise.

    Args:
        call: the node that is turned into kernel calls.
        builder: builder of the program, to which the kernel call is added.
        operation: the operation.
        parameters: the operation's parameters, see :meth:`Chain.step`.
        inputs: indices of the operands; None for the node's inputs in their order.
    """
    y = call.output()
    chain = Chain(y.shape)
    tensors = [call.context.tensors[i] for i in (call.node.inputs if inputs is None else inputs)]
    operands = [operand(builder, chain, tensor) for tensor in tensors]
    chain.step(operation, operands, *parameters)
    chain.emit(builder, builder.tensor(y.index), y.dtype.itemsize)


def emit_section(
    call: Call,
    builder: ProgramBuilder,
    operation: int,
    parameters: Sequence[float | NDArray[Any]],
    start: int,
    stop: int,
) -> None:
    """Add a kernel call that applies an operation to a part of a node's only operand.

    The part has the elements from number *start* on, and before number *stop*.
    """
    x, y = call.input(0), call.output()
    sizes = x.dtype.itemsize, y.dtype.itemsize
    chain = Chain((stop - start,))
    source = chain.source(builder.tensor(x.index) + start * sizes[0], chain.shape, sizes[0])
    chain.step(operation, [source], *parameters)
    chain.emit(builder, builder.tensor(y.index) + start * sizes[1], sizes[1])


def operand(builder: ProgramBuilder, chain: Chain, tensor: Tensor, trailing: int = 0) -> int:
    """Add *tensor* as an input to a chain, and return the number by which steps name it.

    Args:
        builder: builder of the program.
        chain: the chain.
        tensor: the input.
        trailing: number of dimensions of size 1 that are added after those of the tensor.
    """
    shape = (*tensor.shape, *(1,) * trailing)
    if math.prod(shape) == 1:
        shape = ()  # the output may have a lower rank
    return chain.source(builder.tensor(tensor.index), shape, tensor.dtype.itemsize)
