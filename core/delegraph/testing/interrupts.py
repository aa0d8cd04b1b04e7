"""Raises interrupts at chosen lines of a call: at the first line, at the second, and so on.

A signal's handler may raise between two instructions of Python. Examples are ``KeyboardInterrupt``,
and errors by which tests or servers end calls that take too long. After an interrupted call, the
next call must still be right::

    at = 0
    while interrupted(interpreter.invoke, at, inside=["delegraph"]):
        at += 1
        ...  # compare what the interpreter does now with what it should do

Python checks for signals after calls, at the beginning of functions and at the end of each loop
iteration. So no signal arrives between the body of a ``with`` and its end, or before the first call
in a ``finally`` block. No interrupt is raised at these lines.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Sequence
from functools import cache
from opcode import opmap
from types import FrameType
from typing import Any, Literal

Step = Literal["line", "opcode"]
"""Unit that is counted: lines, or the interpreter's instructions."""

_NOT_TAKEN = opmap.get("NOT_TAKEN")
"""Instruction of Python 3.14 that only marks a branch; ``try`` statements do not cover it."""


def interrupted(
    call: Callable[[], object], at: int, *, inside: Sequence[str], step: Step = "line"
) -> bool:
    """Call a function, and raise ``KeyboardInterrupt`` at the executed line number *at*.

    Only lines that this thread runs are counted, in the modules *inside* and their submodules.

    Args:
        call: the function to call.
        at: number of the line in the order of execution, from 0.
        inside: names of modules or packages.
        step: unit that *at* counts: lines, or bytecode instructions.

    Returns:
        Whether the call was interrupted; if not, it ended before line *at*.
    """
    left, was_raised = at, False

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left, was_raised
        if event == "call":
            name = frame.f_globals.get("__name__", "")
            if not any(name == each or name.startswith(f"{each}.") for each in inside):
                return None
            frame.f_trace = trace  # Python 3.13 starts to trace opcodes only where there is one
            frame.f_trace_opcodes = step == "opcode"
        elif event == step and not was_raised and not _is_without_signals(frame, step):
            if left == 0:
                was_raised = True
                raise KeyboardInterrupt
            left -= 1
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = step == "opcode"  # Python 3.12 asks settrace for any
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        if not was_raised:
            raise
        return True
    finally:
        sys.settrace(before)
    return was_raised


def _is_without_signals(frame: FrameType, step: Step) -> bool:
    """Whether Python handles no signal before the line or opcode at which *frame* is.

    *step* is ``line`` or ``opcode``.
    """
    if step == "opcode" and frame.f_code.co_code[frame.f_lasti] == _NOT_TAKEN:
        return True
    return frame.f_lineno in _lines_without_signals(frame.f_code.co_filename)


@cache
def _lines_without_signals(path: str) -> frozenset[int]:
    """Return the lines of ``with`` and the first lines of ``finally`` blocks in the file *path*."""
    found = set()
    for node in ast.walk(ast.parse("".join(linecache.getlines(path)))):
        if isinstance(node, ast.With):
            found.add(node.lineno)
        elif isinstance(node, ast.Try) and node.finalbody:
            found.add(node.finalbody[0].lineno)
    return frozenset(found)
