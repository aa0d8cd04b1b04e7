"""Messages arrive as they were sent; what makes no sense is an error, and no file is left open."""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator

import pytest

from delegraph.runtime.isolation.messages import Channel, Kind

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    mine, other = socket.socketpair()
    channel = Channel(mine)
    with other:
        yield channel, other
    channel.close()


def test_a_text_arrives_with_its_files(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    read, write = os.pipe()
    sender = Channel(other)
    sender.send_run(7)
    sender.send(Kind.CALL, {"method": "take", "numbers": [1, 2]}, [write])
    sender.send_done()
    assert channel.receive() == (Kind.RUN, 7, {}, ())
    kind, _, content, files = channel.receive()
    assert (kind, content) == (Kind.CALL, {"method": "take", "numbers": [1, 2]})
    os.write(files[0], b"x")
    assert os.read(read, 1) == b"x"
    assert channel.receive().kind is Kind.DONE
    for file in (read, write, *files):
        os.close(file)


def test_a_long_text_arrives_in_parts(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    text = b'{"a": "' + b"b" * 5000 + b'"}'
    other.sendall(struct.pack("<HHI", Kind.ANSWER, 0, len(text)) + text[:10])
    channel.wait_with(lambda: other.sendall(text[10:]))  # called when it waits for the rest
    assert len(channel.receive().content["a"]) == 5000


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack("<HHI", Kind.ANSWER, 0, 3) + b"{]}",
        struct.pack("<HHI", 99, 0, 2) + b"{}",
        struct.pack("<HHI", Kind.ANSWER, 1000, 2) + b"{}",
    ],
    ids=["no JSON", "unknown kind", "too many files"],
)
def test_what_makes_no_sense_is_an_error(ends: tuple[Channel, socket.socket], sent: bytes) -> None:
    channel, other = ends
    other.sendall(sent)
    with pytest.raises(OSError, match="a message"):
        channel.receive()


def test_the_end_of_the_other_process_is_noticed(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    other.sendall(b"half")
    other.close()
    with pytest.raises(EOFError):
        channel.receive()


def test_waiting_ends_when_somebody_says_so(ends: tuple[Channel, socket.socket]) -> None:
    channel, _ = ends

    def enough() -> None:
        raise KeyError("enough")

    channel.wait_with(enough)
    with pytest.raises(KeyError, match="enough"):
        channel.receive()
