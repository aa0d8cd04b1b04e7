"""Programs in files: the same program comes back, and only from a file that is sound."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from attention_model import Attention
from delegated import DIGITS, Watched
from delegraph import Interpreter
from delegraph.errors import DelegraphError
from delegraph.memory import aligned_buffer
from delegraph.testing import cases
from delegraph_numba_cpu.bounds import Overrun
from delegraph_numba_cpu.bounds.rules import check_row
from delegraph_numba_cpu.instructions.inverted_residual_int8 import STRIP
from delegraph_numba_cpu.instructions.memory import Address, Memory, Row, constant
from delegraph_numba_cpu.instructions.moves import COPY
from delegraph_numba_cpu.kept import program_file as file
from delegraph_numba_cpu.kept import writing
from delegraph_numba_cpu.kept.checks import check_computed_records, check_numbers, check_scratch
from delegraph_numba_cpu.kept.keys import version
from delegraph_numba_cpu.kept.reading import read
from delegraph_numba_cpu.kept.writing import pieces_of
from delegraph_numba_cpu.library.cpu import level_named
from delegraph_numba_cpu.library.kernel_library import library
from delegraph_numba_cpu.lowering import schedule
from delegraph_numba_cpu.program.program import Program
from delegraph_numba_cpu.program.working_memory import WorkingMemory
from kept_program_damage import starts

needs_library = pytest.mark.skipif(
    version() is None, reason="no library has the present kernels, so nothing is kept"
)

pytestmark = [needs_library, pytest.mark.usefixtures("keeping")]

OPERATORS = (
    "ADD", "ARG_MAX", "AVERAGE_POOL_2D", "BATCH_MATMUL", "CAST", "CONCATENATION", "CONV_2D",
    "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "GATHER", "HARD_SWISH", "L2_NORMALIZATION", "LSTM",
    "MEAN", "PAD", "RESIZE_BILINEAR", "SOFTMAX", "STRIDED_SLICE", "SVDF", "TRANSPOSE",
    "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM",
)  # fmt: skip

KEY = bytes(range(32))

CONTENT = DIGITS.read_bytes()


def run_source(model: Path) -> str:
    """Return a program that runs a model, and prints a digest of its answer."""
    return f"""
import hashlib, sys
from delegraph import Interpreter
import numpy as np
i = Interpreter({str(model)!r}, delegates=["numba_cpu"], num_threads=2)
i.allocate_tensors()
d = i.get_input_details()[0]
i.set_tensor(d["index"], np.arange(np.prod(d["shape"])).reshape(d["shape"]).astype(d["dtype"]))
i.invoke()
print(hashlib.sha256(i.get_tensor(i.get_output_details()[0]["index"]).tobytes()).hexdigest())
"""


def unkept() -> Watched:
    """Return a delegate that keeps no programs."""
    return Watched(kept_programs=False)


def made(
    content: bytes, folder: Path, delegate: Watched | None = None
) -> tuple[Interpreter, Watched]:
    """Return an allocated interpreter whose delegate keeps programs in a folder."""
    delegate = delegate or Watched()
    interpreter = Interpreter(
        model_content=content, experimental_delegates=[delegate], cache_dir=folder
    )
    interpreter.allocate_tensors()
    return interpreter, delegate


def answers(interpreter: Interpreter) -> list[NDArray[Any]]:
    """Return the outputs for inputs that depend on their shapes alone."""
    rng = np.random.default_rng(1)
    for details in interpreter.get_input_details():
        shape, dtype = details["shape"], details["dtype"]
        values = rng.integers(0, 2, shape) if dtype != np.float32 else rng.normal(size=shape)
        interpreter.set_tensor(details["index"], values.astype(dtype))
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def forbid_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    def lower_all(*_: object) -> None:
        raise AssertionError("a kept program should have been used")

    monkeypatch.setattr(schedule, "lower_all", lower_all)


def sound_models(op: str, folder: Path, count: int) -> Iterator[bytes]:
    """Yield models of one operator that the delegate computes, of several types."""
    left = count
    for case in cases(op, seed=2, count=1):
        try:
            interpreter, delegate = made(case.model(), folder, unkept())
            answers(interpreter)
        except DelegraphError:
            continue
        if not delegate.programs:
            continue
        yield case.model()
        left -= 1
        if not left:
            return


def check_round_trip(content: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter, built = made(content, folder)
    expected, files = answers(interpreter), [b"".join(pieces_of(p, KEY)) for p in built.programs]
    with monkeypatch.context() as patch:
        forbid_lowering(patch)
        again, kept = made(content, folder)
    assert built.programs
    assert [b"".join(pieces_of(p, KEY)) for p in kept.programs] == files
    for found, wanted in zip(answers(again), expected, strict=True):
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("op", OPERATORS)
def test_a_kept_program_is_the_one_that_was_built(
    op: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in sound_models(op, tmp_path, 4):
        check_round_trip(content, tmp_path, monkeypatch)


def test_a_kept_program_of_many_layers_is_the_one_that_was_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_round_trip(CONTENT, tmp_path, monkeypatch)


def test_a_kept_attention_is_the_one_that_was_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention = Attention((2, 3), scale="MUL", mask=(2, 1, 1, 20), is_transposed=True)
    check_round_trip(attention.model(), tmp_path, monkeypatch)


def test_records_that_rows_write_are_written_first_and_alone(tmp_path: Path) -> None:
    models = cases("BATCH_MATMUL", seed=2, count=1)
    programs = (p for case in models for p in programs_of(case.model(), tmp_path))
    program = next(p for p in programs if any(r.instruction.kernel == "pack_stack" for r in p.rows))
    rows, offsets = list(program.rows), program.offsets
    check_computed_records(rows, offsets)
    with pytest.raises(Overrun, match="is read before it is written"):
        check_computed_records(rows[::-1], offsets)
    with pytest.raises(Overrun, match="other values lie where a record is"):
        check_computed_records(rows, dict.fromkeys(offsets, 0))
    pack = next(row for row in rows if row.instruction.kernel == "pack_stack")
    copy = Row(pack.instruction, pack.tiles, {**pack.words, "matrix": pack.words["matrices"]})
    with pytest.raises(Overrun, match="the copied record is there before the run"):
        check_row(copy, 1, 64)


def test_nothing_lies_in_the_scratch_memory_of_a_row() -> None:
    row = Row(STRIP, 1, {"y": Address(y := Memory(64)), "scratch": Address(scratch := Memory(64))})
    check_scratch(row, {id(y): 0, id(scratch): 64})
    with pytest.raises(Overrun, match="'y' lies in the memory of 'scratch'"):
        check_scratch(row, {id(y): 0, id(scratch): 63})
    with pytest.raises(Overrun, match="'y' lies in the memory of 'scratch'"):
        check_scratch(Row(STRIP, 1, row.words | {"y": Address(scratch)}), {id(scratch): 0})
    with pytest.raises(Overrun, match="'scratch' is no working memory"):
        check_scratch(row, {})


def programs_of(content: bytes, folder: Path) -> list[Program]:
    """Return the programs of a model; none where it cannot be allocated."""
    delegate = unkept()
    with suppress(DelegraphError):
        made(content, folder, delegate)
    return delegate.programs


@pytest.mark.parametrize(
    ("name", "number"), [("bytes", -1), ("bytes", 1 << 50), ("tiles", 2), ("tiles", 0)]
)
def test_numbers_that_no_lowering_writes_are_refused(name: str, number: int) -> None:
    words = {"source": 0, "target": 0, "bytes": 8, "tiles": 1}
    check_numbers(COPY, words, 1)
    with pytest.raises(Overrun, match="'copy'"):
        check_numbers(COPY, words | {name: number}, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="copies run in child processes")
@pytest.mark.repetition(2)
@pytest.mark.parametrize("op", ["ADD", "CONV_2D", "DEPTHWISE_CONV_2D", "LSTM", "TRANSPOSE"])
def test_damaged_programs_with_right_digests_end_no_process(op: str) -> None:
    script = Path(__file__).with_name("kept_program_damage.py")
    command = [sys.executable, str(script), "--copies=600", "--seconds=60", f"--op={op}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_was_checked_stays_when_the_file_is_written_meanwhile() -> None:
    (start,) = starts(["ADD"], 1)
    data = aligned_buffer(len(start.content))

    class Scribbling(WorkingMemory):
        def require(self, size: int) -> None:
            data[:] = 0x5A

    programs = []
    for memory in (WorkingMemory(), Scribbling()):
        data[:] = np.frombuffer(start.content, np.uint8)
        programs.append(read(data.data, KEY, start.host(memory)))
    one, other = programs
    for number in range(len(one.rows)):
        np.testing.assert_array_equal(other.record(number), one.record(number))


def test_sums_of_pieces_are_those_of_the_whole() -> None:
    whole = np.random.default_rng(0).integers(0, 256, 5 * file.PAGE).astype(np.uint8)
    for cuts in ([0], [1, 2, 3], [100, file.PAGE, 3 * file.PAGE + 5], [2 * file.PAGE, len(whole)]):
        assert file.sums_of(*np.split(whole, cuts)) == file.sums_of(whole)


def test_only_small_neighbours_are_joined() -> None:
    sizes = [0, 3, 5, writing.JOINED, 7, writing.JOINED - 6, 1]
    pieces = [np.full(size, i, np.uint8) for i, size in enumerate(sizes)]
    joined = list(writing.joined(pieces))
    assert [len(piece) for piece in joined] == [8, writing.JOINED, 7, writing.JOINED - 5]
    assert joined[1] is pieces[3]
    np.testing.assert_array_equal(np.concatenate(joined), np.concatenate(pieces))


def test_shared_constants_of_equal_sums_stay_apart() -> None:
    first = np.eye(2, file.PAGE // 8, dtype=np.int64)
    both = [first, first[::-1].copy()]
    assert len({file.sums_of(array.view(np.uint8).reshape(-1)) for array in both}) == 1
    kernels = library(level_named("auto"))
    kernels.load([COPY.family])
    rows = []
    for array in both:
        words = {"source": Address(constant(array)), "target": Address(Memory(array.nbytes))}
        rows.append(Row(COPY, 1, {**words, "bytes": array.nbytes, "tiles": 1}))
    shared: dict[bytes, bytes] = {}
    pieces_of(Program(rows, kernels, 1), KEY, shared)
    found = [content[: first.nbytes] for content in shared.values()]
    assert found == [array.tobytes() for array in both]
