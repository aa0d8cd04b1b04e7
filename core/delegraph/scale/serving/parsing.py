"""Decoding of requests: small requests at once, large JSON in a child process.

Parsing a large JSON text would block this process's other threads, because Python's parser does not
release the global interpreter lock.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

from delegraph.errors import DelegraphError, in_words
from delegraph.processes.ending import Death
from delegraph.processes.worker import Worker
from delegraph.scale.serving.json_protocol import read_request
from delegraph.scale.serving.limits import ByteBudget, Limits
from delegraph.scale.serving.refusals import Kind, Refusal, invalid
from delegraph.scale.serving.requests import InferRequest
from delegraph.scale.serving.tensors import GivenTensor

LARGE = 2**17
"""Number of bytes of JSON from which on a child process parses it; this takes about 1 ms."""

_BODIES = 4
"""Number of bodies of the largest allowed size that the server can hold at the same time."""

_NICENESS = 10
"""Increase of the child's nice value, so that small requests have priority."""


class RequestReader:
    """Decodes requests within limits.

    Args:
        limits: limits of the server.

    Attributes:
        budget: bytes of large requests that the server may hold at the same time.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.budget = ByteBudget(
            _BODIES * max(limits.body, limits.decompressed), limits.body_seconds
        )
        self._worker = Worker(
            ChildReader, limits, time_limit=limits.body_seconds, records=(InferRequest, GivenTensor)
        )
        self._turn = asyncio.Lock()
        self._use = threading.Lock()  # also for a request that is cancelled while it is parsed

    async def rest(self, body: bytes | bytearray, header_length: int | None) -> InferRequest:
        """Return the request of a REST body; binary tensors are views of the body.

        *header_length* is the length of the JSON in bytes; None if no binary tensors follow.

        Raises:
            Refusal: the body is not a request of the protocol.
        """
        if len(body) < LARGE:
            return read_request(body, header_length, self._limits)
        if header_length is not None and header_length < LARGE:  # the rest needs no parser
            return await asyncio.to_thread(read_request, body, header_length, self._limits)
        return await self._parsed("rest", body, header_length)

    async def grpc(self, message: bytes) -> InferRequest:
        """Return the request of a gRPC message; raw tensors are views of the message.

        Raises:
            Refusal: the message is not a request of the protocol.
        """
        from delegraph.scale.serving.grpc_protocol import read_message, split_message

        if len(message) < LARGE:
            return read_message(message)
        rest, _ = split_message(message)
        if len(rest) < LARGE:
            return await asyncio.to_thread(read_message, message)
        return await self._parsed("grpc", message)

    async def _parsed(self, method: str, *arguments: Any) -> InferRequest:
        async with self._turn:  # one process, so one request
            found = await asyncio.to_thread(self._asked, method, *arguments)
        if isinstance(found, Death):
            raise invalid(f"the request cannot be parsed: {found.how}")
        kind, content = found
        if kind is not None:
            raise Refusal(Kind[kind], content)
        request: InferRequest = content
        return request

    def _asked(self, method: str, *arguments: Any) -> Any:
        try:
            with self._use:
                return self._worker.ask(method, *arguments)
        except (DelegraphError, OSError) as error:
            return Kind.UNAVAILABLE.name, f"the request cannot be parsed now: {in_words(error)}"

    def close(self) -> None:
        """End the child process, if there is one."""
        threading.Thread(target=self._worker.close).start()


class ChildReader:
    """Decodes requests in a child process, so that large JSON does not block the server.

    Args:
        limits: limits of the server.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        if hasattr(os, "nice"):
            os.nice(_NICENESS)

    def rest(
        self, body: bytes | bytearray, header_length: int | None
    ) -> tuple[str | None, InferRequest | str]:
        """Return (None, request) for a REST body, or (kind, reason) if it is rejected.

        *header_length* is the length of the JSON in bytes; None if no binary tensors follow.
        """
        return _caught(lambda: read_request(body, header_length, self._limits))

    def grpc(self, message: bytes) -> tuple[str | None, InferRequest | str]:
        """Return (None, request) for a gRPC message, or (kind, reason) if it is rejected."""
        from delegraph.scale.serving.grpc_protocol import read_message

        return _caught(lambda: read_message(message))


def _caught(read: Callable[[], InferRequest]) -> tuple[str | None, InferRequest | str]:
    try:
        return None, read()
    except Refusal as refusal:
        return refusal.kind.name, refusal.reason
    except MemoryError:
        return Kind.TOO_LARGE.name, "the request needs more memory than there is"
