"""Runs work in a forked child, which may hang, crash or leave processes."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

FORK = multiprocessing.get_context("fork")


class Ended(NamedTuple):
    """The end of a child process.

    Attributes:
        how: ``done``, ``timeout`` or ``crash``.
        result: of the work, when it is done.
    """

    how: str
    result: Any = None


def in_child(work: Callable[[], Any], limit: float | None = None) -> Ended:
    """Run *work* in a fork of this process, for at most *limit* seconds.

    With a limit it also gets no more processor time than that, so that a loop without end ends
    when this process does not live to end it.
    """
    receiver, sender = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_work, args=(work, sender, limit))
    child.start()
    sender.close()
    try:
        return Ended("done", receiver.recv()) if receiver.poll(limit) else Ended("timeout")
    except EOFError:
        return Ended("crash")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid or 0, signal.SIGKILL)
        child.kill()
        child.join()
        receiver.close()


def _work(work: Callable[[], Any], sender: Connection, limit: float | None) -> None:
    os.setsid()  # so that what the work starts is ended with it
    if limit is not None:
        seconds = int(limit + 1) * (os.cpu_count() or 1)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    sender.send(work())
    os._exit(0)
