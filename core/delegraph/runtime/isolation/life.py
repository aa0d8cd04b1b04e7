"""Processes that end with the one that started them."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading


def end_with(life: int) -> None:
    """Let this process end when its host does, however: also while a kernel hangs.

    Where the system can, it is the system that ends it, since a kernel may hold Python's lock.

    Args:
        life: descriptor of a pipe that nobody writes to, whose other end the host alone has.
    """
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, getattr(fcntl, "F_SETSIG", 10), signal.SIGKILL)
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([life], [], [], 0)[0]:  # it has ended before this was said
            os._exit(1)
    else:
        threading.Thread(target=_exit_after, args=(life,), daemon=True).start()


def _exit_after(life: int) -> None:
    os.read(life, 1)
    os._exit(1)
