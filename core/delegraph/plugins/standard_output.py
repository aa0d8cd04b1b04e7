"""Keeps what plugins print out of standard output, which belongs to whoever asked for them."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import cast

_lock = threading.Lock()
_users = 0
_undo = contextlib.ExitStack()


@contextlib.contextmanager
def printed_to_stderr() -> Iterator[None]:
    """Send to standard error what is printed meanwhile: by Python, to the descriptor, or by C.

    It is the output of the whole process, other threads included. Where several are open, in
    whatever threads and order, the last one that closes undoes it.
    """
    global _users
    with _lock:
        if _users == 0:
            _undo.enter_context(contextlib.redirect_stdout(sys.stderr))
            _undo.enter_context(_descriptor_exchanged())
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _undo.close()


@contextlib.contextmanager
def _descriptor_exchanged() -> Iterator[None]:
    """Let the descriptor of standard output lead to that of standard error, if there are both."""
    if sys.__stdout__ is None or sys.__stderr__ is None:
        yield
        return
    _flush()
    try:
        kept = os.dup(1)
    except OSError:  # closed since Python started
        yield
        return
    try:
        with contextlib.suppress(OSError):  # standard error was closed
            os.dup2(2, 1)
        yield
    finally:
        _flush()
        os.dup2(kept, 1)
        os.close(kept)


def _flush() -> None:
    """Write out what Python and C hold back, to where it leads now."""
    with contextlib.suppress(OSError, ValueError):  # closed
        sys.__stdout__.flush()  # type: ignore[union-attr]  # the caller looked
    flush_all = _flush_of_c()
    if flush_all is not None:
        flush_all(None)


@functools.cache
def _flush_of_c() -> Callable[[None], object] | None:
    """Return C's function that writes out all streams; None where it cannot be reached."""
    try:
        import ctypes

        library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
        return cast(Callable[[None], object], library.fflush)
    except (ImportError, OSError, AttributeError):
        return None
