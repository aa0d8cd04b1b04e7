"""Messages between the host and the process of a delegate, sent over a socket.

A message begins with eight bytes. These are the whole message for an invoke: ``RUN`` with a
partition's number, answered by ``DONE``. Other messages continue with JSON text. Large data is in
memory files, whose descriptors are sent along. Nothing is pickled, so data from a broken process
cannot run code here.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from delegraph.errors import ArgumentError, DelegateLoadError, PluginError

_HEADER = struct.Struct("<HHI")
_MOST_FILES = 8

PATIENCE = 0.05
"""Seconds between two checks whether an answer may still come."""


KEPT_ERRORS = (PluginError, ArgumentError, DelegateLoadError)
"""Errors in the delegate's process that the host raises with the same type."""


class Kind(IntEnum):
    """Kind of a message between host and delegate process.

    Attributes:
        RUN: compute the partition with this number.
        DONE: the partition is computed.
        CALL: call the method that the text names.
        ANSWER: the text is the answer to a call, or to a run with output shapes that were unknown.
        FAILURE: the text describes the error.
    """

    RUN = 1
    DONE = 2
    CALL = 3
    ANSWER = 4
    FAILURE = 5


class Message(NamedTuple):
    """One received message.

    Attributes:
        kind: kind of the message.
        number: number of the partition in ``RUN``; 0 in other messages.
        content: decoded text; empty in ``RUN`` and ``DONE``.
        files: descriptors that were sent along; the receiver must close them.
    """

    kind: Kind
    number: int
    content: Mapping[str, Any]
    files: Sequence[int]


class Channel:
    """One end of the socket between host and delegate process.

    Args:
        connection: the socket; :meth:`close` closes it.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        self._socket = connection
        self._while_waiting: Callable[[], object] = _nothing

    def send_run(self, number: int) -> None:
        """Ask the delegate's process to compute the partition with *number*.

        Raises:
            OSError: the other process has ended.
        """
        self._socket.sendall(_HEADER.pack(Kind.RUN, 0, number))

    def send_done(self) -> None:
        """Send the message that the requested partition is computed."""
        self._socket.sendall(_HEADER.pack(Kind.DONE, 0, 0))

    def send(self, kind: Kind, content: Mapping[str, Any], files: Sequence[int] = ()) -> None:
        """Send a message of *kind* with *content* as JSON text and *files*, file descriptors.

        Raises:
            OSError: the other process has ended.
        """
        text = json.dumps(content).encode()
        self._socket.sendall(_HEADER.pack(kind, len(files), len(text)))
        sent = socket.send_fds(self._socket, [text], list(files)) if files else 0
        self._socket.sendall(text[sent:])

    def receive(self) -> Message:
        """Wait for the next message and return it.

        Raises:
            EOFError: the other process has ended.
            OSError: the other process has ended, or its message is invalid.
            Exception: an error of ``while_waiting``.
        """
        kind, count, value = _HEADER.unpack(self._whole(_HEADER.size))
        if kind == Kind.DONE or kind == Kind.RUN:
            return Message(Kind(kind), value, {}, ())
        files: list[int] = []
        try:
            text = self._with_files(value, count, files) if count else b""
            text += self._whole(value - len(text))
            return Message(Kind(kind), 0, json.loads(text), files)
        except BaseException as error:
            for file in files:
                os.close(file)
            if isinstance(error, ValueError):
                raise OSError(f"a message that cannot be read: {error}") from error
            raise

    def _whole(self, size: int) -> bytes:
        found = self._part(self._socket.recv, size) if size else b""
        while len(found) < size:
            found += self._part(self._socket.recv, size - len(found))
        return found

    def _with_files(self, size: int, count: int, files: list[int]) -> bytes:
        """Receive the first part of a text of *size* bytes, which carries *count* descriptors.

        The descriptors are added to *files*.
        """
        if count > _MOST_FILES:
            raise OSError(f"a message with {count} files")
        numbers = array.array("i")
        space = socket.CMSG_SPACE(count * numbers.itemsize)

        def receive(size: int) -> bytes:
            part, ancillary, _, _ = self._socket.recvmsg(size, space)
            for level, kind, data in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
            return part

        part = self._part(receive, size)
        files.extend(numbers)
        return part

    def _part(self, receive: Callable[[int], bytes], size: int) -> bytes:
        """Receive at most *size* bytes, without a time limit.

        *receive* is the method of the socket, which is called again after each timeout.

        Raises:
            EOFError: the other process has closed its end.
        """
        while True:
            try:
                part = receive(size)
            except TimeoutError:
                self._while_waiting()
                continue
            if not part:
                raise EOFError("the other process has closed its end")
            return part

    def wait_with(self, while_waiting: Callable[[], object]) -> None:
        """Let :meth:`receive` call *while_waiting* every :data:`PATIENCE` seconds of waiting."""
        self._while_waiting = while_waiting

    def close(self) -> None:
        """Close this end of the channel; the other process ends when it notices."""
        self._socket.close()


def _nothing() -> None:
    """Do nothing while waiting: the default for :meth:`Channel.wait_with`."""
