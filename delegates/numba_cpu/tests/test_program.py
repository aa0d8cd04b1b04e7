"""Programs: where memory is planned, what follows the host's tensors, what is kept alive."""

from __future__ import annotations

import gc
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph.delegation import BlobCache
from delegraph.errors import DelegateError
from delegraph.testing import interrupted
from delegraph_numba_cpu.instructions.memory import SLACK, Memory, Row
from delegraph_numba_cpu.instructions.moves import COPY
from delegraph_numba_cpu.instructions.softmax import SOFTMAX
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.builder import LARGEST_SHARED, ProgramBuilder, WorkerScratch
from delegraph_numba_cpu.program.program import Program
from delegraph_numba_cpu.program.working_memory import WorkingMemory

SIZE = 256


class HostTensor:
    """A tensor as a host has it, as far as programs look at it."""

    index, name = 0, "x"

    def __init__(self, data: NDArray[Any], is_constant: bool = False) -> None:
        self.data = data
        self.is_constant = is_constant

    @property
    def bytes(self) -> int:
        return self.data.nbytes


def builder(lib: Library, *tensors: HostTensor, packed: Any = None) -> ProgramBuilder:
    context: Any = SimpleNamespace(tensors=tensors, cache=BlobCache)
    return ProgramBuilder(context, lib, 2, True, {} if packed is None else packed)


def bytes_of(value: int) -> NDArray[np.uint8]:
    return np.full(SIZE, value, np.uint8)


def copy(made: ProgramBuilder, source: Memory, target: Memory) -> None:
    made.emit(COPY, 1, source=source, target=target, bytes=SIZE)


def addresses(program: Program, row: int) -> tuple[int, int]:
    """Source and target of a row, as its kernel sees them."""
    program.bind()
    words = program.record(row)
    return int(words[0]), int(words[1])


def run(lib: Library, program: Program) -> None:
    program.bind()
    lib.run(program.table, 0, 0)


def chain(made: ProgramBuilder, count: int) -> list[Memory]:
    """Copy tensor 0 to tensor 1 through *count* pieces of memory between."""
    places = [made.tensor(0), *(made.scratch(SIZE) for _ in range(count)), made.tensor(1)]
    for source, target in pairwise(places):
        copy(made, source, target)
    return places


def copied(lib: Library, source: HostTensor, target: HostTensor, rows: int) -> Program:
    """Return a program that has copied a tensor to another by so many rows."""
    made = builder(lib, source, target)
    made.border(0)
    made.border(1)
    chain(made, rows)
    program = made.finish()
    run(lib, program)
    return program


def test_rows_follow_tensors_that_the_host_moves(lib: Library) -> None:
    source, target = HostTensor(bytes_of(7)), HostTensor(bytes_of(0))
    program = copied(lib, source, target, 3)
    assert (target.data == 7).all()
    before = target.data
    source.data, target.data = bytes_of(9), bytes_of(0)
    run(lib, program)
    assert (target.data == 9).all()
    assert (before == 7).all()


@pytest.mark.parametrize("moves_back", [False, True])
def test_an_interrupt_anywhere_leaves_no_row_at_the_old_place(
    lib: Library, moves_back: bool
) -> None:
    source, target = HostTensor(bytes_of(7)), HostTensor(bytes_of(0))
    program = copied(lib, source, target, 3)
    line, was_interrupted = 0, True
    while was_interrupted:
        line += 1
        old = source.data, target.data
        source.data, target.data = bytes_of(line), bytes_of(0)
        was_interrupted = interrupted(
            program.bind, line - 1, inside=["delegraph_numba_cpu.program.program"]
        )
        if moves_back:
            source.data, target.data = old
            target.data[:] = 0
        run(lib, program)
        assert (target.data == source.data).all()
    assert line > 10


def test_memory_is_shared_by_those_that_do_not_live_at_once(lib: Library) -> None:
    made = builder(lib, HostTensor(bytes_of(7)), HostTensor(bytes_of(0)))
    made.border(0)
    made.border(1)
    chain(made, 20)
    program = made.finish()
    for row in range(1, 20):
        source, target = addresses(program, row)
        assert abs(source - target) >= SIZE + SLACK
        assert source % 64 == 0
    assert program.scratch_bytes <= 2 * (SIZE + 2 * SLACK)


def test_a_worker_has_the_same_scratch_memory_in_all_rows(lib: Library) -> None:
    made = builder(lib, HostTensor(bytes_of(7)), HostTensor(bytes_of(0)))
    for size in (2 * SIZE, LARGEST_SHARED, LARGEST_SHARED + 1):
        source, target = made.scratch(SIZE), made.scratch(SIZE)
        made.emit(
            SOFTMAX, 1, source=source, target=target, rows=1, length=16, beta=1.0,
            scratch=WorkerScratch(size),
        )  # fmt: skip
    program = made.finish()
    program.bind()
    scratch, apart = SOFTMAX.slots("scratch", "scratch_bytes")
    small, large, too_large = (program.record(row)[[scratch, apart]].tolist() for row in range(3))
    assert small == large != too_large
    assert (large[1], too_large[1]) == (LARGEST_SHARED, LARGEST_SHARED + 1)


def test_memory_that_a_later_row_reads_is_kept_until_then(lib: Library) -> None:
    target = HostTensor(bytes_of(0))
    made = builder(lib, HostTensor(bytes_of(7)), target)
    made.border(0)
    made.border(1)
    kept = made.scratch(SIZE)
    copy(made, made.tensor(0), kept)
    for _ in range(5):
        copy(made, made.constant(bytes_of(1)), made.scratch(SIZE))
    copy(made, kept, made.tensor(1))
    run(lib, made.finish())
    assert (target.data == 7).all()


def test_constants_outlive_whoever_made_them(lib: Library) -> None:
    target = HostTensor(bytes_of(0))
    made = builder(lib, HostTensor(bytes_of(5), is_constant=True), target)
    made.border(0)
    made.border(1)
    copy(made, made.tensor(0), made.tensor(1))
    program = made.finish()
    made.context.tensors[0].data = None
    del made
    gc.collect()
    noise = [bytes_of(99) for _ in range(100)]  # whatever was freed is written over
    run(lib, program)
    assert (target.data == 5).all()
    assert len(noise) == 100


@pytest.mark.parametrize("offset", [0, 1, 8])
def test_constants_begin_where_vectors_like_them(lib: Library, offset: int) -> None:
    array = np.arange(SIZE + offset, dtype=np.uint8)[offset:]
    memory = builder(lib).constant(array)
    assert memory.address % 64 == 0
    assert memory.size == SIZE
    assert (memory.array == array).all()


def test_weights_are_packed_once_for_all_programs_of_a_partition(lib: Library) -> None:
    packed: dict[object, object] = {}
    calls: list[str] = []

    def pack() -> NDArray[Any]:
        calls.append("pack")
        return bytes_of(3)

    for _ in range(3):
        target = HostTensor(bytes_of(0))
        made = builder(lib, target, packed=packed)
        made.border(0)
        copy(made, made.packed("key", pack), made.tensor(0))
        run(lib, made.finish())
        assert (target.data == 3).all()
    assert calls == ["pack"]


def test_an_alias_is_the_same_memory(lib: Library) -> None:
    made = builder(lib, *(HostTensor(bytes_of(0)) for _ in range(3)))
    made.border(0)
    assert made.alias(1, 0)
    assert made.tensor(1) is made.tensor(0)
    assert not made.alias(1, 2)  # in use


def test_a_tensor_inside_moves_to_the_border_with_its_alias(lib: Library) -> None:
    source, inside, target = (HostTensor(bytes_of(value)) for value in (7, 1, 0))
    made = builder(lib, source, inside, target)
    made.border(0)
    made.border(2)
    copy(made, made.tensor(0), made.tensor(1))
    assert made.alias(2, 1)
    program = made.finish()
    run(lib, program)
    assert (target.data == 7).all()
    assert program.scratch_bytes == 0
    target.data = bytes_of(0)
    run(lib, program)
    assert (target.data == 7).all()


def test_two_tensors_at_the_border_keep_their_memory(lib: Library) -> None:
    made = builder(lib, *(HostTensor(bytes_of(0)) for _ in range(3)))
    for index in range(3):
        made.border(index)
    assert not made.alias(1, 0)
    assert made.tensor(1) is not made.tensor(0)


def test_a_tensor_inside_moves_to_the_border_once(lib: Library) -> None:
    made = builder(lib, *(HostTensor(bytes_of(0)) for _ in range(3)))
    made.border(1)
    made.border(2)
    assert made.alias(1, 0)
    assert not made.alias(2, 0)


def test_a_kernel_writes_over_what_it_reads_for_the_last_time(lib: Library) -> None:
    target = HostTensor(bytes_of(0))
    made = builder(lib, HostTensor(bytes_of(7)), target)
    made.border(0)
    made.border(1)
    first, second = made.scratch(SIZE), made.scratch(SIZE)
    copy(made, made.tensor(0), first)
    made.emit(COPY, 1, ("source",), source=first, target=second, bytes=SIZE)
    copy(made, second, made.tensor(1))
    program = made.finish()
    source_address, target_address = addresses(program, 1)
    assert source_address == target_address
    assert program.scratch_bytes == SIZE + SLACK
    run(lib, program)
    assert (target.data == 7).all()


@pytest.mark.parametrize("reason", ["read later", "another size", "in the middle", "not told"])
def test_a_kernel_does_not_write_over_what_is_wanted(lib: Library, reason: str) -> None:
    made = builder(lib, HostTensor(bytes_of(7)), HostTensor(bytes_of(0)))
    made.border(0)
    made.border(1)
    first = made.scratch(SIZE)
    second = made.scratch(2 * SIZE if reason == "another size" else SIZE)
    copy(made, made.tensor(0), first)
    source = first + 64 if reason == "in the middle" else first
    replaceable = () if reason == "not told" else ("source",)
    made.emit(COPY, 1, replaceable, source=source, target=second, bytes=64)
    if reason == "read later":
        copy(made, first, made.tensor(1))
    copy(made, second, made.tensor(1))
    source_address, target_address = addresses(made.finish(), 1)
    assert abs(source_address - target_address) >= SIZE


def test_programs_share_working_memory_and_follow_when_it_grows(lib: Library) -> None:
    shared = WorkingMemory()
    programs, targets = [], []
    for count in (1, 2, 1):  # pieces of memory: the second program needs twice as much
        target = HostTensor(bytes_of(0))
        tensors = [HostTensor(bytes_of(len(programs) + 1)), target]
        context: Any = SimpleNamespace(tensors=tensors, cache=BlobCache)
        made = ProgramBuilder(context, lib, 2, True, {}, shared)
        made.border(0)
        made.border(1)
        chain(made, count)
        programs.append(made.finish())
        targets.append(target)
    assert shared.data.nbytes == max(program.scratch_bytes for program in programs)
    assert len({addresses(program, 0)[1] for program in programs}) == 1
    for i, (program, target) in enumerate(zip(programs, targets, strict=True)):
        run(lib, program)
        assert (target.data == i + 1).all()


def test_addresses_inside_of_memory_follow_it(lib: Library) -> None:
    target = HostTensor(bytes_of(0))
    made = builder(lib, HostTensor(bytes_of(7)), target)
    made.border(0)
    made.border(1)
    made.emit(COPY, 1, source=made.tensor(0) + 64, target=made.tensor(1) + 32 + 32, bytes=64)
    run(lib, made.finish())
    assert target.data.tolist() == [0] * 64 + [7] * 64 + [0] * 128


def test_rows_say_which_nodes_they_compute(lib: Library) -> None:
    made = builder(lib, HostTensor(bytes_of(1)), HostTensor(bytes_of(0)))
    made.nodes = (4, 5)
    copy(made, made.tensor(0), made.tensor(1))
    assert [row.nodes for row in made.finish().rows] == [(4, 5)]


def test_a_row_with_a_word_too_few_is_refused(lib: Library) -> None:
    memory = Memory(SIZE, 64)
    rows = [Row(COPY, 1, {"source": memory + 0, "target": memory + 0, "tiles": 1})]
    with pytest.raises(TypeError, match=r"missing or unknown words: \['bytes'\]"):
        Program(rows, lib, 1)


def test_a_program_without_rows_does_nothing(lib: Library) -> None:
    program = builder(lib).finish()
    run(lib, program)
    assert program.rows == ()
    assert program.scratch_bytes == 0


def test_tensors_of_other_sizes_do_not_share_memory(lib: Library) -> None:
    made = builder(lib, HostTensor(bytes_of(0)), HostTensor(np.zeros(SIZE // 4, np.uint8)))
    made.border(1)
    assert not made.alias(1, 0)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (None, "tensor 0 'x' has no memory"),
        (np.zeros(SIZE - 1, np.uint8), f"came with {SIZE - 1} bytes of uint8"),
        (np.zeros((SIZE, 2), np.uint8)[:, 0], "came with 256 bytes of uint8"),
        (np.zeros(SIZE, object), "bytes of object"),
    ],
)
def test_memory_that_is_handed_over_must_be_what_was_checked(
    lib: Library, array: Any, message: str
) -> None:
    source, target = HostTensor(bytes_of(7)), HostTensor(bytes_of(0))
    program = copied(lib, source, target, 1)
    source.data = array
    with pytest.raises(DelegateError, match=message):
        program.bind()
