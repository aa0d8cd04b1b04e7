"""Runs one call at a time in a background thread, for ``invoke_async``."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, TypeAlias

from delegraph.locks import Lock
from delegraph.runtime.execution.calls import busy_error

Run: TypeAlias = Callable[[Callable[[Callable[[], None]], None]], object]
"""Function that takes the interpreter's lock, and then calls its argument to run an invoke.

It gives its argument the function that invokes.
"""


class Background:
    """Runs one call at a time in a background thread, which ends with the interpreter."""

    def __init__(self) -> None:
        self._process = 0
        self._pool: ThreadPoolExecutor | None = None
        self._last: weakref.ref[AsyncInvoke] | None = None

    def start(self, run: Run, stop: Callable[[], None], *, keep: object) -> AsyncInvoke:
        """Start an invoke in the background; return once it holds the interpreter's lock.

        *keep* stays alive until the invoke has ended.

        Raises:
            Exception: an error of *run* before the invoke has begun.
        """
        future, has_begun = AsyncInvoke(stop), Future[None]()
        work = [(future, has_begun, run, keep)]
        threads = self._threads()
        try:
            threads.submit(_work, work)
            self._last = weakref.ref(future)
            has_begun.result()
            return future
        except BaseException:  # interrupted: the caller would never get the Future
            if not _taken(work):
                future.cancel()
                wait([future])
            raise

    def _threads(self) -> ThreadPoolExecutor:
        """Return this process's pool of two threads, since a callback may start an invoke."""
        if self._pool is None or self._process != os.getpid():
            self._process = os.getpid()
            self._pool = ThreadPoolExecutor(2, thread_name_prefix="delegraph invoke_async")
        return self._pool

    def require_idle(self, name: str, *, even_here: bool = False) -> None:
        """Raise an error if a background call runs; *name* is the method being called.

        A call from the background thread itself is allowed, unless *even_here*.

        Raises:
            StateError: a background call runs.
        """
        running = self._running()
        if running is not None and (even_here or running.thread != threading.get_ident()):
            raise busy_error("invoke_async", running.thread, name)

    def close(self) -> None:
        """Wait for the background call, unless called from it; then end the threads."""
        running = self._running()
        if running is not None and running.thread != threading.get_ident():
            wait([running])
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None

    def _running(self) -> AsyncInvoke | None:
        last = None if self._last is None else self._last()
        is_over = last is None or last.done() or self._process != os.getpid()  # after a fork
        return None if is_over else last


class AsyncInvoke(Future[None]):
    """Future of an invoke in a background thread.

    Attributes:
        thread: identifier of the thread that runs the invoke; 0 before it starts.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__()
        self.thread = 0
        self.stopping = Stopping(stop)

    def cancel(self) -> bool:
        """Ask the invoke to stop; return False, since it does not end at once."""
        self.stopping.request()
        return False


class Stopping:
    """Stop request to one call; it has no effect on later calls."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop: Callable[[], None] | None = stop
        self._lock = Lock()  # a signal handler may interrupt its owner

    def request(self) -> None:
        """Ask the call to stop; do nothing if the call is over."""
        with self._lock:
            if self._stop is not None:
                self._stop()

    def end(self) -> None:
        """Record that the call has ended; later requests to stop have no effect."""
        with self._lock:
            self._stop = None


def _taken(work: list[Any]) -> Any:
    """Remove and return the only item of *work*; None if another thread has removed it."""
    try:
        return work.pop()
    except IndexError:
        return None


def _work(work: list[Any]) -> None:
    """Run the call in *work* and set its Future; do nothing if the call was withdrawn.

    Local names are deleted at the end. Otherwise the Future's error would keep them alive through
    its traceback.
    """
    taken = _taken(work)
    if taken is None:
        return
    future, has_begun, run, keep = taken
    del taken
    future.thread = threading.get_ident()
    stopping = future.stopping

    try:
        run(partial(_begin, has_begun, stopping))
    except BaseException as error:  # noqa: BLE001 - raised by the Future
        if has_begun.done():
            future.set_exception(error)
        else:
            stopping.end()
            future.set_result(None)
            has_begun.set_exception(error)
    else:
        future.set_result(None)
    finally:
        del future, has_begun, run, keep


def _begin(has_begun: Future[None], stopping: Stopping, invoke: Callable[[], None]) -> None:
    has_begun.set_result(None)
    try:
        invoke()
    finally:
        stopping.end()
