"""Limits of a server on the size and duration of requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from delegraph.scale.serving.refusals import Kind, Refusal

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a server.

    Attributes:
        body: largest body of a request in bytes, REST and gRPC alike; > 0.
        decompressed: largest body in bytes after decompression; > 0.
        header: largest header of a REST request in bytes; > 0.
        connections: largest number of open connections of REST, and of gRPC; > 0.
        header_seconds: seconds from the start of a connection or request to the end of its header.
        body_seconds: seconds from the end of the header to the end of the body.
        idle_seconds: seconds that a connection may stay open between two requests.
        json_depth: largest depth of nested JSON arrays and objects.
        json_values: largest number of JSON values in a request.
    """

    body: int = 64 * MIB
    decompressed: int = 64 * MIB
    header: int = 64 * 2**10
    connections: int = 1000
    header_seconds: float = 10.0
    body_seconds: float = 60.0
    idle_seconds: float = 75.0
    json_depth: int = 32
    json_values: int = 10_000_000


class ByteBudget:
    """Limit on the number of bytes of large requests that the server holds at the same time.

    Requests wait in turn until there is room for them.

    Args:
        size: number of bytes; a larger request is held alone.
        seconds: seconds that a request waits.
    """

    def __init__(self, size: int, seconds: float) -> None:
        self._size = self._free = size
        self._seconds = seconds
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def held(self, size: int) -> AsyncIterator[None]:
        """Hold *size* bytes during the block, after waiting until they are free.

        Raises:
            Refusal: other requests hold the bytes for too long.
        """
        size = min(size, self._size)
        await self._take(size)
        try:
            yield
        finally:
            self._free += size
            self._wake()

    async def _take(self, size: int) -> None:
        if not self._waiting and size <= self._free:
            self._free -= size
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append((size, turn))
        timer = loop.call_later(self._seconds, _give_up, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and not turn.exception():
                self._free += size  # it got its bytes at the same time
            raise
        finally:
            timer.cancel()
            self._wake()

    def _wake(self) -> None:
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self._free):
            size, turn = self._waiting.popleft()
            if not turn.done():
                self._free -= size
                turn.set_result(None)


def _give_up(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        reason = "too many large requests; send it again later"
        turn.set_exception(Refusal(Kind.UNAVAILABLE, reason))
