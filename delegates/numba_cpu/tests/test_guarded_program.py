"""DELEGRAPH_NUMBA_GUARD=1: who writes beside its memory is told from the row that did it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from delegated import delegated, run
from delegraph import Interpreter
from delegraph.errors import DelegateError, OperatorError
from delegraph.testing import one_op_model, tensor
from delegraph_numba_cpu.instructions.moves import COPY
from delegraph_numba_cpu.lowering import OPERATORS, Call
from delegraph_numba_cpu.program import builder
from delegraph_numba_cpu.program.builder import ProgramBuilder
from delegraph_numba_cpu.program.guarded_memory import GuardedMemory
from delegraph_numba_cpu.program.program import is_guarded

SIZE = 20


@pytest.fixture(autouse=True)
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELEGRAPH_NUMBA_GUARD", "1")


def abs_model() -> bytes:
    return one_op_model("ABS", [tensor((SIZE,))], [tensor((SIZE,))])


def interpreter(model: bytes) -> Interpreter:
    made = delegated(model)
    made.allocate_tensors()
    return made


def misplaced(monkeypatch: pytest.MonkeyPatch, offset: int) -> Interpreter:
    """Return an interpreter whose ABS copies to an address so many bytes beside its output."""

    def lower(call: Call, builder: ProgramBuilder) -> None:
        x, y = call.input(0), call.output()
        source, target = builder.tensor(x.index), builder.tensor(y.index)
        builder.emit(COPY, source=source, target=target + offset, bytes=y.bytes)

    monkeypatch.setitem(OPERATORS, "ABS", replace(OPERATORS["ABS"], lower=lower))
    return interpreter(abs_model())


@pytest.mark.parametrize("value", ["", "0"])
def test_it_is_off_unless_asked_for(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("DELEGRAPH_NUMBA_GUARD", value)
    assert not is_guarded()


@pytest.mark.parametrize(("offset", "where"), [(-4, "before"), (-1, "before")])
def test_a_wrong_row_is_caught_by_the_table_and_without_it_by_its_name(
    monkeypatch: pytest.MonkeyPatch, offset: int, where: str
) -> None:
    with pytest.raises(DelegateError, match="'copy' writes bytes -"):
        misplaced(monkeypatch, offset)
    monkeypatch.setattr(builder, "check_row", lambda *row: None)
    made = misplaced(monkeypatch, offset)
    message = rf"nodes \[0\]: 'copy' has written {where} tensor 1 '\w+', which has 80 bytes"
    for _ in range(2):
        with pytest.raises(DelegateError, match=message):
            made.invoke()


def test_memory_of_the_programs_own_has_marks_in_the_room_after_it() -> None:
    piece = GuardedMemory(100, room=64)
    assert piece.address % 64 == 0
    assert piece.overrun() == ""
    piece.array[:] = 0
    assert piece.overrun() == ""
    beyond = piece.array.base
    assert beyond is not None
    whole = np.frombuffer(beyond, np.uint8)  # type: ignore[call-overload]  # a buffer
    start = piece.address - whole.__array_interface__["data"][0]
    whole[start + 100] = 0
    assert piece.overrun() == "after"
    piece.mend()
    whole[start - 1] = 0
    assert piece.overrun() == "before"


def test_who_goes_farther_ends_at_once(fresh_python) -> None:  # type: ignore[no-untyped-def]  # a fixture
    source = (
        "import ctypes, os, sys\n"
        "from delegraph_numba_cpu.program.guarded_memory import GuardedMemory\n"
        "piece = GuardedMemory(100)\n"
        "if os.name != 'posix' or os.fork():\n"
        "    status = os.wait()[1] if os.name == 'posix' else 11\n"
        "    print(os.WTERMSIG(status) if os.name == 'posix' else 11)\n"
        "else:\n"
        "    ctypes.c_char.from_address(piece.address + 100).value\n"
    )
    assert int(fresh_python(source)) in (7, 10, 11)  # SIGBUS or SIGSEGV


def test_answers_are_the_same() -> None:
    made = interpreter(abs_model())
    x = np.linspace(-1, 1, SIZE, dtype=np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(run(made, x), np.abs(x))


def test_more_than_the_system_gives_is_refused_in_words() -> None:
    with pytest.raises(OperatorError, match="guarded bytes cannot be had"):
        GuardedMemory(1 << 62)
