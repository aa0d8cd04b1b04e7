"""Bodies of REST are read within limits of size, time and decompression."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from delegraph.scale.serving.endpoints.body import (
    ClientGone,
    announced_length,
    content_encoding,
    decompressed,
    read_body,
)
from delegraph.scale.serving.limits import Limits
from delegraph.scale.serving.refusals import Kind, Refusal

LIMITS = Limits(body=1000, decompressed=10_000, body_seconds=0.05)
TEXT = b"0123456789" * 100


def read(messages: Sequence[Mapping[str, Any]]) -> bytes:
    left = list(messages)

    async def receive() -> Mapping[str, Any]:
        if not left:
            await asyncio.sleep(10)
        return left.pop(0)

    return bytes(asyncio.run(read_body(receive, None, LIMITS)))


def piece(body: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def test_pieces_are_joined() -> None:
    assert read([piece(b"a", True), piece(b"b", False)]) == b"ab"


@pytest.mark.parametrize(
    ("messages", "kind", "message"),
    [
        ([piece(b"a" * 600, True)] * 2, Kind.TOO_LARGE, "more than the 1000 bytes"),
        ([piece(b"a", True)], Kind.TOO_SLOW, r"not complete after 0\.05 s"),
    ],
)
def test_bodies_over_the_limits(messages: Any, kind: Kind, message: str) -> None:
    with pytest.raises(Refusal, match=message) as caught:
        read(messages)
    assert caught.value.kind is kind


def test_a_client_that_leaves() -> None:
    with pytest.raises(ClientGone):
        read([piece(b"a", True), {"type": "http.disconnect"}])


def test_an_announced_length_over_the_limit() -> None:
    assert announced_length({b"content-length": b"1000"}, LIMITS) == 1000
    assert announced_length({}, LIMITS) is None
    with pytest.raises(Refusal, match="the body has 1001 bytes, expected at most 1000"):
        announced_length({b"content-length": b"1001"}, LIMITS)


def test_encodings() -> None:
    assert content_encoding({}) == ""
    assert content_encoding({b"content-encoding": b" GZip"}) == "gzip"
    with pytest.raises(Refusal, match="'br', expected deflate, gzip or identity") as caught:
        content_encoding({b"content-encoding": b"br"})
    assert caught.value.kind is Kind.UNKNOWN_ENCODING


def test_what_was_compressed() -> None:
    assert decompressed(gzip.compress(TEXT), "gzip", LIMITS) == TEXT
    assert decompressed(zlib.compress(TEXT), "deflate", LIMITS) == TEXT
    random = bytes(range(256)) * 30
    assert decompressed(gzip.compress(random, 0), "gzip", LIMITS) == random


packed = partial(gzip.compress, mtime=0)
"""Compresses bytes to the same bytes at any time, as names of tests need it."""


@pytest.mark.parametrize(
    ("body", "encoding", "message"),
    [
        (TEXT, "gzip", "no gzip, as Content-Encoding says"),
        (packed(TEXT)[:-9], "gzip", "gzip with no end"),
        (packed(TEXT) + b"x", "gzip", "gzip with bytes after its end"),
        (b"", "deflate", "deflate with no end"),
        (packed(bytes(10_001)), "gzip", "more than 10000 bytes after decompression"),
        (packed(bytes(10_000_000)), "gzip", "more than 10000 bytes after decompression"),
    ],
)
def test_bodies_that_are_compressed_wrongly(body: bytes, encoding: str, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        decompressed(body, encoding, LIMITS)
