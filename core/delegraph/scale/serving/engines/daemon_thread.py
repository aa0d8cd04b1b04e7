"""A thread that calls a model; a hanging call does not prevent the process from ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class DaemonThread:
    """Runs functions one by one in a thread; the process can end without waiting for it.

    Args:
        name: name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()

    def call(self, function: Callable[..., _Result], *arguments: Any) -> asyncio.Future[_Result]:
        """Return a future of the running event loop with the result of a function."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Result] = loop.create_future()

        def tell(give: Callable[[Any], object], value: object) -> None:
            if not future.done():
                give(value)

        def work() -> None:
            give: Callable[[Any], object] = future.set_result
            try:
                found: Any = function(*arguments)
            except BaseException as error:  # noqa: BLE001 - raised in the event loop
                give, found = future.set_exception, error
            with suppress(RuntimeError):  # the loop is closed: nothing waits for the result
                loop.call_soon_threadsafe(tell, give, found)

        self._work.put(work)
        return future

    def end(self) -> None:
        """End the thread after all functions that were given to it."""
        self._work.put(None)
