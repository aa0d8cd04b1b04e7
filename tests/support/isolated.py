"""Delegates in processes of their own, and what became of those processes."""

from __future__ import annotations

import os
import select
from pathlib import Path
from typing import Any

from delegraph import Delegate, Interpreter, load_delegate
from support.by_name import sines

DANGEROUS = Path(__file__).with_name("dangerous_delegate.py")


def isolated(timeout: float | None = None, **options: Any) -> Delegate:
    """Return the dangerous delegate, isolated in another process."""
    return load_delegate(DANGEROUS, options, isolate="process", timeout=timeout)


def interpreter_with(delegate: Delegate, **arguments: Any) -> Interpreter:
    """Return an interpreter of sin(x) + x + sin(2x); *delegate* takes its two ADD."""
    return Interpreter(model_content=sines(), delegates=[delegate], **arguments)


def pid_of(delegate: Any) -> int:
    """Return the process of an isolated delegate."""
    pid: int = delegate.process.child.pid
    return pid


class Watched:
    """Process that is not our child; tells whether it has ended."""

    def __init__(self, pid: int) -> None:
        self._file = os.pidfd_open(pid)

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def ends(self, seconds: float = 20.0) -> bool:
        """Whether the process ends within *seconds*; True at once if it has ended already."""
        return bool(select.select([self._file], [], [], seconds)[0])
