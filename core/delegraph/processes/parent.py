"""Entry point of a child process: makes it end with its parent, then calls a function.

The file is run as a program by its path. It uses only the standard library, so Delegraph is
imported only with the function.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any, BinaryIO


def die_with_parent(life: int) -> None:
    """Make this process end when its parent ends, even if native code holds the GIL.

    On Linux, the kernel kills the process, and its process group if it leads one.

    Args:
        life: descriptor of a pipe's read end; only the parent has the write end, and writes
            nothing.
    """
    if sys.platform == "linux":
        import fcntl
        import select

        leads_group = os.getpgrp() == os.getpid()
        fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpid() if leads_group else os.getpid())
        fcntl.fcntl(life, getattr(fcntl, "F_SETSIG", 10), signal.SIGKILL)
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([life], [], [], 0)[0]:  # the parent ended before the watch was set up
            os._exit(1)
    else:
        threading.Thread(target=_exit_after, args=(life,), daemon=True).start()


def _let_group_end(life: int) -> None:
    """Sleep briefly, since the kernel may still have to end the process group of a dead parent.

    The parent's pipes close one after the other. If this process ended too early, no signal would
    be sent.
    """
    if sys.platform == "linux" and os.getpgrp() == os.getpid():
        import select

        select.select([life], [], [], 0.02)


def _exit_after(life: int) -> None:
    os.read(life, 1)
    os._exit(1)


def pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the stream of the parent's requests and the stream of this process's answers."""
    program: Any = sys.modules["__main__"]
    return program.requests, program.answers


def _descriptor(life: str) -> int:
    """Return the file descriptor of the pipe that closes when the parent process ends.

    Args:
        life: number of the pipe: its file descriptor, or on Windows its handle.
    """
    if sys.platform != "win32":
        os.set_inheritable(int(life), False)
        return int(life)
    import msvcrt

    return msvcrt.open_osfhandle(int(life), os.O_RDONLY)


def main() -> None:
    """Call the function that the command line names, then exit; prints go to standard error."""
    global requests, answers
    life, name, arguments, *path = sys.argv[1:]
    del sys.argv[1:]
    sys.path[:] = path
    tie = _descriptor(life)
    die_with_parent(tie)
    requests, answers = open(os.dup(0), "rb"), open(os.dup(1), "wb")  # noqa: SIM115 - until the end
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with suppress(OSError):  # standard error is closed
        os.dup2(2, 1)
    module, _, function = name.partition(":")
    code = getattr(import_module(module), function)(*json.loads(arguments))
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    _let_group_end(tie)
    os._exit(code if isinstance(code, int) else 0)  # do not wait for threads and exit handlers


if __name__ == "__main__":
    requests: BinaryIO
    answers: BinaryIO
    main()
