"""A REST connection: uvicorn's, with limits on the time and size of headers."""

from __future__ import annotations

import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from delegraph.scale.serving.limits import Limits

_PHRASES = {
    400: "Bad Request",
    408: "Request Timeout",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


PIECE = 2**15
"""Bytes that are read at a time; few, so that other clients need not wait long."""

LINGER = 5.0
"""Seconds in which the rest of a refused body is read, so that the client gets the refusal."""


class Connection(HttpToolsProtocol):
    """A connection whose client must send a header in time and with few bytes.

    A connection that is idle between two requests is closed without an answer, as HTTP allows. For
    a late or too large header, or too many connections, an error is sent and the connection closed.
    """

    limits: Limits
    """Limits of the server; :func:`connection_class` sets them."""

    def connection_made(self, transport: Any) -> None:
        """Accept the connection *transport*, or reject it if there are too many connections."""
        super().connection_made(transport)
        if hasattr(transport, "max_size"):  # of asyncio's sockets
            transport.max_size = PIECE
        self._header_bytes = self._body_bytes = 0
        self._timer: Any = None
        if len(self.connections) > self.limits.connections:
            self._refuse(503, f"there are {self.limits.connections} connections already")
        else:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limits of the lost connection; *exc*, if not None, is the reason."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process *data*; reject the connection if a header or a body is too large."""
        if self.transport.is_closing():
            return
        if self._header_bytes >= 0:
            if not self._header_bytes and self._timer is None:
                self._start_timer()
            self._header_bytes += len(data)
        else:
            self._body_bytes += len(data)
            if (
                self._body_bytes > 2 * self.limits.body + PIECE
            ):  # also trailers, and chunks' lengths
                self._refuse(413, f"the body has more than {self.limits.body} bytes")
                return
        super().data_received(data)
        if self._header_bytes > self.limits.header and not self.transport.is_closing():
            self._refuse(431, f"the header is larger than {self.limits.header} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Process a header line, *name*: *value*; lines that follow a body are ignored."""
        if self._header_bytes >= 0:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Process the end of a header; a body may follow."""
        self._stop_timer()
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        self._header_bytes, self._body_bytes = -1, 0  # the body follows
        if size > self.limits.header:
            self._refuse(431, f"the header has {size} bytes, expected {self.limits.header} or less")
            return
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Process the end of a request."""
        self._header_bytes = 0
        if self.transport.is_closing():
            return
        super().on_message_complete()
        if self.cycle.response_complete:  # the rest of a rejected body has arrived
            self._stop_timer()
            self._await_next()

    def on_response_complete(self) -> None:
        """Process the end of an answer; the rest of a rejected body may still arrive."""
        super().on_response_complete()
        if self._header_bytes < 0 and not self.transport.is_closing():
            self._timer = self.loop.call_later(LINGER, self.timeout_keep_alive_handler)

    def _await_next(self) -> None:
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that is idle, or whose client does not read its answer."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def on_body(self, body: bytes) -> None:
        """Process bytes of a body."""
        if not self.transport.is_closing():
            super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Reject a request that is not HTTP; *msg* has no effect."""
        self._refuse(400, "the request is not HTTP/1.1")

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.limits.header_seconds, self._is_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_late(self) -> None:
        self._refuse(408, f"no header after {self.limits.header_seconds:g} s")

    def _refuse(self, status: int, reason: str) -> None:
        self._stop_timer()
        if self.transport.is_closing():
            return
        if self.cycle is not None and self.cycle.response_started and self._header_bytes < 0:
            self.transport.abort()  # the request is answered already
            return
        body = json.dumps({"error": reason}).encode()
        head = (
            f"HTTP/1.1 {status} {_PHRASES[status]}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def connection_class(limits: Limits) -> type[Connection]:
    """Return the class of connections with these limits."""
    return type("LimitedConnection", (Connection,), {"limits": limits})
