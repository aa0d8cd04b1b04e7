"""Interrupts are raised where a test asks for them, and where a signal may raise."""

from __future__ import annotations

import threading

import pytest

from delegraph.testing import interrupted

HERE = [__name__]


def done_before(at: int) -> tuple[bool, list[str]]:
    """What a call has done when it is interrupted at a line, and whether it was."""
    done: list[str] = []

    def call() -> None:
        done.append("first")
        with threading.Lock():
            done.append("inside")
        try:
            done.append("body")
        finally:
            done.append("finally")
            done.append("end")

    return interrupted(call, at, inside=HERE), done


def test_lines_are_interrupted_before_they_run() -> None:
    assert [done_before(at) for at in range(6)] == [
        (True, []),
        (True, ["first"]),  # inside the ``with``; the statement itself does not count
        (True, ["first", "inside"]),
        (True, ["first", "inside", "finally", "end"]),
        (True, ["first", "inside", "body", "finally"]),  # the second line of the ``finally``
        (False, ["first", "inside", "body", "finally", "end"]),
    ]


def test_instructions_are_more_than_lines() -> None:
    def call() -> None:
        threading.get_ident()

    lines, opcodes = (
        [interrupted(call, at, inside=HERE, step=step) for at in range(9)]
        for step in ("line", "opcode")
    )
    assert lines.count(True) == 1
    assert opcodes.count(True) > 2


def test_other_modules_are_left_alone() -> None:
    assert not interrupted(lambda: None, 0, inside=["somewhere.else"])


def test_an_interrupt_of_the_call_itself_comes_through() -> None:
    def call() -> None:
        raise KeyboardInterrupt("a real one")

    with pytest.raises(KeyboardInterrupt, match="a real one"):
        interrupted(call, 100, inside=HERE)
