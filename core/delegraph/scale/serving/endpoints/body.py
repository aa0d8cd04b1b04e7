"""Reads the bodies of REST requests in pieces, within limits of size and time."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from delegraph.scale.serving.limits import Limits
from delegraph.scale.serving.refusals import Kind, Refusal, invalid

Receive = Callable[[], Awaitable[Mapping[str, Any]]]

_PIECE = 2**18
"""Bytes that are decompressed at a time."""

_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Mapping from a content encoding to the window bits by which zlib selects the format."""


class ClientGone(Exception):
    """Error: the client has closed its connection before the server could respond."""


def announced_length(headers: Mapping[bytes, bytes], limits: Limits) -> int | None:
    """Return the body's length in bytes by *headers*; None if it is not in them.

    Raises:
        Refusal: the length is over the limit.
    """
    text = headers.get(b"content-length")
    if text is None:
        return None
    length = int(text)  # the HTTP parser has checked that it is a number
    if length > limits.body:
        raise Refusal(
            Kind.TOO_LARGE, f"the body has {length} bytes, expected at most {limits.body}"
        )
    return length


def content_encoding(headers: Mapping[bytes, bytes]) -> str:
    """Return the encoding of the body by *headers*: ``"gzip"``, ``"deflate"``, or ``""`` for none.

    Raises:
        Refusal: this server does not know the encoding.
    """
    encoding = headers.get(b"content-encoding", b"").decode("latin1").strip().lower()
    if encoding in ("", "identity"):
        return ""
    if encoding not in _WINDOWS:
        raise Refusal(
            Kind.UNKNOWN_ENCODING,
            f"Content-Encoding is {encoding[:80]!r}, expected deflate, gzip or identity",
        )
    return encoding


async def read_body(receive: Receive, announced: int | None, limits: Limits) -> bytearray:
    """Return the body of a request.

    Args:
        receive: ASGI function that returns the next piece.
        announced: length in bytes that the header announces; None if unknown.
        limits: limits of size and time.

    Raises:
        ClientGone: the client has left.
        Refusal: the body is too large, or does not arrive in time.
    """
    try:
        return await asyncio.wait_for(_pieces(receive, announced, limits), limits.body_seconds)
    except asyncio.TimeoutError as error:
        raise Refusal(
            Kind.TOO_SLOW, f"the body is not complete after {limits.body_seconds:g} s"
        ) from error


async def _pieces(receive: Receive, announced: int | None, limits: Limits) -> bytearray:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message.get("body", b"")
        if len(body) > limits.body:
            raise Refusal(
                Kind.TOO_LARGE, f"the body has more than the {limits.body} bytes that are allowed"
            )
        if not message.get("more_body", False):
            return body


def decompressed(body: bytes | bytearray, encoding: str, limits: Limits) -> bytearray:
    """Return a body without its compression.

    *encoding* is ``gzip`` or ``deflate``.

    Raises:
        Refusal: the bytes are not in this format, or too many after decompression.
    """
    found = bytearray()
    engine = zlib.decompressobj(_WINDOWS[encoding])
    view = memoryview(body)
    place = 0
    try:
        while place < len(view) and not engine.eof:
            piece: bytes | memoryview = view[place : place + _PIECE]
            place += len(piece)
            while piece and not engine.eof:
                found += engine.decompress(piece, _PIECE)
                piece = engine.unconsumed_tail
                _require_room(found, limits)
        found += engine.flush()
    except zlib.error as error:
        raise invalid(f"the body is no {encoding}, as Content-Encoding says: {error}") from error
    _require_room(found, limits)
    if not engine.eof or engine.unused_data or place < len(view):
        what = "bytes after its end" if engine.eof else "no end"
        raise invalid(f"the body is {encoding} with {what}")
    return found


def _require_room(found: bytearray, limits: Limits) -> None:
    if len(found) > limits.decompressed:
        raise Refusal(
            Kind.TOO_LARGE,
            f"the body has more than {limits.decompressed} bytes after decompression",
        )
