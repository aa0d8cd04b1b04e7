"""Raises interrupts at a chosen line of a call: at the first line, at the second, and so on.

A signal's handler may raise between two instructions of Python. ``KeyboardInterrupt`` does, and so
does what a test or a server raises to end a call that takes too long. What a call leaves half done
must not make the next one wrong::

    at = 0
    while interrupted(interpreter.invoke, at, inside=["delegraph"]):
        at += 1
        ...  # compare what the interpreter does now with what it should do

Python looks for signals after calls, at the beginning of functions and where loops go back. So none
comes between the body of a ``with`` and its end, nor before the first call of a ``finally``; these
places are left out.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Sequence
from functools import cache
from types import FrameType
from typing import Any, Literal

Step = Literal["line", "opcode"]
"""What is counted: lines, or the interpreter's instructions."""


def interrupted(
    call: Callable[[], object], at: int, *, inside: Sequence[str], step: Step = "line"
) -> bool:
    """Call a function and raise ``KeyboardInterrupt`` at line number *at* of those that run.

    Only what this thread runs is counted, in the modules named and those below them.

    Args:
        call: the call.
        at: which line, from 0 on, as they run.
        inside: names of modules or packages.
        step: what *at* counts: lines, or instructions, many of which are in a line.

    Returns:
        Whether there was such a line; else the call has ended by itself.
    """
    left, was_raised = at, False

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left, was_raised
        if event == "call":
            name = frame.f_globals.get("__name__", "")
            if not any(name == each or name.startswith(f"{each}.") for each in inside):
                return None
            frame.f_trace_opcodes = step == "opcode"
        elif event == step and not was_raised and frame.f_lineno not in _kept(frame):
            if left == 0:
                was_raised = True
                raise KeyboardInterrupt
            left -= 1
        return trace

    before = sys.gettrace()
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


def _kept(frame: FrameType) -> frozenset[int]:
    return _lines_without_signals(frame.f_code.co_filename)


@cache
def _lines_without_signals(path: str) -> frozenset[int]:
    """Return the lines of ``with`` statements, and those with which ``finally`` blocks begin."""
    found = set()
    for node in ast.walk(ast.parse("".join(linecache.getlines(path)))):
        if isinstance(node, ast.With):
            found.add(node.lineno)
        elif isinstance(node, ast.Try) and node.finalbody:
            found.add(node.finalbody[0].lineno)
    return frozenset(found)
