"""Redirects output of plugins to standard error; standard output belongs to the program."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator

from delegraph.locks import Lock

_lock = Lock()
_users = 0
_undo = contextlib.ExitStack()


@contextlib.contextmanager
def printed_to_stderr() -> Iterator[None]:
    """Redirect all standard output in this block to standard error, including that of C code.

    The output of the whole process is redirected, other threads included. If several such blocks
    are open, the last one that ends restores the output.
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
    """Point the file descriptor of standard output to standard error, if both exist."""
    if sys.__stdout__ is None or sys.__stderr__ is None:
        yield
        return
    _flush()
    try:
        kept = os.dup(1)
    except OSError:  # closed before Python started
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
    """Write the buffered output of Python and C to where it goes at present."""
    with contextlib.suppress(OSError, ValueError):  # closed
        sys.__stdout__.flush()  # type: ignore[union-attr]  # the caller looked
    flush = _flush_of_c()
    if flush is not None:
        flush()


@functools.cache
def _flush_of_c() -> Callable[[], object] | None:
    """Return a function that flushes C's standard output, or None if there is none.

    Other streams are not flushed: a thread that waits for input holds the lock of its stream.
    """
    try:
        import ctypes

        if sys.platform == "win32":
            library = ctypes.CDLL("ucrtbase")
            library.__acrt_iob_func.restype = ctypes.c_void_p
            stream = ctypes.c_void_p(library.__acrt_iob_func(1))
        else:
            library = ctypes.CDLL(None)
            name = "stdout" if sys.platform == "linux" else "__stdoutp"  # its name on macOS
            stream = ctypes.c_void_p.in_dll(library, name)
        return functools.partial(library.fflush, stream)
    except (ImportError, OSError, AttributeError, ValueError):
        return None
