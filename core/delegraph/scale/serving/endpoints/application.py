"""The paths of REST, as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import delegraph
from delegraph.scale.serving.endpoints.access_log import AccessLog
from delegraph.scale.serving.endpoints.body import (
    ClientGone,
    Receive,
    announced_length,
    content_encoding,
    decompressed,
    read_body,
)
from delegraph.scale.serving.endpoints.token import OPEN, Token
from delegraph.scale.serving.endpoints.tracing import traced
from delegraph.scale.serving.json_protocol import read_json, write_response
from delegraph.scale.serving.limits import Limits
from delegraph.scale.serving.parsing import LARGE, RequestReader
from delegraph.scale.serving.refusals import Kind, Refusal, invalid
from delegraph.scale.serving.served_model import Models, ServedModel

_LOG = logging.getLogger(__name__)

Send = Callable[[Mapping[str, Any]], Awaitable[None]]

LENGTH = b"inference-header-content-length"

EXTENSIONS = ["binary_tensor_data", "model_repository"]
"""Extensions of the protocol that the server supports."""


class Answer:
    """Response to a REST request: status code, body and headers.

    Args:
        content: value to be sent as JSON, or the body as bytes.
        status: status code.
        headers: further headers.
    """

    def __init__(
        self, content: Any, status: int = 200, headers: Mapping[bytes, bytes] | None = None
    ) -> None:
        self.status = status
        self.headers = {b"content-type": b"application/json", **(headers or {})}
        self.body = content
        if not isinstance(content, bytes):
            self.body = json.dumps(content, separators=(",", ":")).encode()


Handler = Callable[["Call"], Awaitable[Answer]]


class Call:
    """A REST request that is being answered.

    Attributes:
        method: HTTP method.
        path: decoded parts of the path.
        headers: mapping from a lower-case name to the value.
        model: name of the model that the request is for, for the log.
    """

    def __init__(self, scope: Mapping[str, Any], receive: Receive) -> None:
        self.method: str = scope["method"]
        raw = scope["raw_path"].decode("latin1")
        self.path = [unquote(part) for part in raw.strip("/").split("/")]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.receive = receive
        self.model: str | None = None


class Application:
    """The ASGI application of the server.

    Args:
        models: the served models.
        reader: object that decodes requests.
        limits: limits of the server.
        token: token that requests must have.
        log: access log.
        pages: functions that answer further GET requests, by path; no token is needed.
    """

    def __init__(
        self,
        models: Models,
        reader: RequestReader,
        limits: Limits,
        token: Token,
        log: AccessLog,
        pages: Mapping[str, Callable[[], Awaitable[Answer]]] | None = None,
    ) -> None:
        self._models = models
        self._reader = reader
        self._limits = limits
        self._token = token
        self._log = log
        self._pages = pages or {}

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer the request of the ASGI parameters *scope*, *receive* and *send*."""
        start = time.perf_counter()
        call = Call(scope, receive)
        try:
            answer = await self._answered(scope, call)
        except ClientGone:
            answer = None
        if answer is not None:
            await _sent(answer, send)
        if self._log.is_on:
            self._log.write(
                protocol="http",
                method=call.method,
                path=scope["path"],
                status=499 if answer is None else answer.status,
                seconds=round(time.perf_counter() - start, 6),
                client=(scope.get("client") or [None])[0],
                model=call.model,
                bytes=None if answer is None else len(answer.body),
            )

    async def _answered(self, scope: Mapping[str, Any], call: Call) -> Answer:
        try:
            if scope["path"] not in OPEN and scope["path"] not in self._pages:
                self._token.require(call.headers.get(b"authorization"))
            with traced(call.headers, scope["path"]):
                return await self._routed(scope["path"], call)
        except Refusal as refusal:
            more = {b"www-authenticate": b"Bearer"} if refusal.kind.status == 401 else None
            return Answer({"error": refusal.reason}, refusal.kind.status, more)
        except ClientGone:
            raise
        except Exception:  # noqa: BLE001 - the server goes on
            _LOG.exception("a request failed in the server")
            return Answer({"error": "the server failed; its log says why"}, 500)

    async def _routed(self, path: str, call: Call) -> Answer:
        method, handler = self._route(path, call.path)
        if call.method != method and not (call.method == "HEAD" and method == "GET"):
            raise Refusal(Kind.WRONG_METHOD, f"{call.method} of {path[:200]}, expected {method}")
        return await handler(call)

    def _route(self, path: str, parts: list[str]) -> tuple[str, Handler]:
        """Return the HTTP method that *path* accepts, and its handler; *parts* is *path* split."""
        if path in self._pages:
            page = self._pages[path]
            return "GET", lambda call: page()
        match parts:
            case ["metrics"]:
                return "GET", self._metrics
            case ["v2"]:
                return "GET", self._server
            case ["v2", "health", "live"]:
                return "GET", self._live
            case ["v2", "health", "ready"]:
                return "GET", self._ready
            case ["v2", "models"]:
                return "GET", self._names
            case ["v2", "models", name, *rest]:
                return self._model_route(path, name, rest)
            case ["v2", "repository", "index"]:
                return "POST", self._index
            case ["v2", "repository", "models", name, "load"]:
                return "POST", lambda call: self._changed(call, self._models.load, name)
            case ["v2", "repository", "models", name, "unload"]:
                return "POST", lambda call: self._changed(call, self._models.unload, name)
        raise Refusal(Kind.NOT_FOUND, f"no path {path[:200]}")

    def _model_route(self, path: str, name: str, rest: list[str]) -> tuple[str, Handler]:
        version = ""
        if len(rest) > 1 and rest[0] == "versions":
            version, rest = rest[1], rest[2:]
        match rest:
            case []:
                return "GET", lambda call: self._metadata(call, name, version)
            case ["ready"]:
                return "GET", lambda call: self._model_ready(call, name, version)
            case ["infer"]:
                return "POST", lambda call: self._inferred(call, name, version)
        raise Refusal(Kind.NOT_FOUND, f"no path {path[:200]}")

    # -- the server --------------------------------------------------------------------------------

    async def _live(self, call: Call) -> Answer:
        return Answer({"live": True})

    async def _ready(self, call: Call) -> Answer:
        is_ready = await self._models.is_ready()
        return Answer({"ready": is_ready}, 200 if is_ready else 503)

    async def _server(self, call: Call) -> Answer:
        return Answer(
            {"name": "delegraph", "version": delegraph.__version__, "extensions": EXTENSIONS}
        )

    async def _metrics(self, call: Call) -> Answer:
        from prometheus_client import exposition

        text = await asyncio.to_thread(exposition.generate_latest)
        kind = exposition.CONTENT_TYPE_PLAIN_0_0_4.encode()
        return Answer(text, headers={b"content-type": kind})

    # -- models ------------------------------------------------------------------------------------

    async def _names(self, call: Call) -> Answer:
        return Answer({"models": sorted({entry["name"] for entry in self._models.index()})})

    async def _metadata(self, call: Call, name: str, version: str) -> Answer:
        call.model = name
        return Answer(self._models.metadata(name, version))

    async def _model_ready(self, call: Call, name: str, version: str) -> Answer:
        call.model = name
        is_ready = await self._models.find(name, version).is_ready()
        return Answer({"name": name, "ready": is_ready}, 200 if is_ready else 503)

    async def _index(self, call: Call) -> Answer:
        body = await read_body(call.receive, announced_length(call.headers, self._limits), _SMALL)
        content = read_json(bytes(body), _SMALL) if body.strip() else {}
        only_ready = content.get("ready", False) if isinstance(content, dict) else None
        if not isinstance(only_ready, bool):
            raise invalid("expected an object with 'ready' as true or false")
        return Answer(self._models.index(only_ready))

    async def _changed(
        self, call: Call, change: Callable[[str], Awaitable[None]], name: str
    ) -> Answer:
        call.model = name
        if b"origin" in call.headers and not self._token.is_needed:
            raise Refusal(Kind.FORBIDDEN, "a web page may not load or unload models")
        await read_body(call.receive, announced_length(call.headers, self._limits), _SMALL)
        await change(name)
        return Answer({})

    async def _inferred(self, call: Call, name: str, version: str) -> Answer:
        call.model = name
        model = self._models.find(name, version)
        length = announced_length(call.headers, self._limits)
        encoding = content_encoding(call.headers)
        size = self._limits.body if length is None else length
        if encoding:
            size += self._limits.decompressed
        if size < LARGE:
            return await self._computed(call, model, length, encoding)
        async with self._reader.budget.held(size):
            return await self._computed(call, model, length, encoding)

    async def _computed(
        self, call: Call, model: ServedModel, length: int | None, encoding: str
    ) -> Answer:
        body = await read_body(call.receive, length, self._limits)
        if encoding:
            body = await asyncio.to_thread(decompressed, body, encoding, self._limits)
        request = await self._reader.rest(body, _header_length(call.headers))
        response = await unless_gone(call.receive, model.infer(request))
        values = sum(output.values.size for output in response.outputs)
        if values < LARGE // 8:
            content, json_length = write_response(response, request)
        else:
            content, json_length = await asyncio.to_thread(write_response, response, request)
        if json_length is None:
            return Answer(content)
        return Answer(
            content,
            headers={
                b"content-type": b"application/octet-stream",
                LENGTH: str(json_length).encode(),
            },
        )


_SMALL = Limits(body=2**16, body_seconds=10.0)
"""Limits of bodies that hold no tensors."""


def _header_length(headers: Mapping[bytes, bytes]) -> int | None:
    text = headers.get(LENGTH)
    if text is None:
        return None
    if not text.isdigit() or len(text) > 18:
        raise invalid(
            f"Inference-Header-Content-Length is {text[:80].decode('latin1')!r}, expected a number "
            "of bytes"
        )
    return int(text)


async def unless_gone(receive: Receive, answer: Awaitable[Any]) -> Any:
    """Await *answer* and return its result; cancel it if the client disconnects meanwhile.

    Args:
        receive: ASGI function that reports that the client has disconnected.
        answer: awaitable that computes the response.

    Raises:
        ClientGone: the client has left.
    """
    work = asyncio.ensure_future(answer)
    gone = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientGone
        return work.result()
    finally:
        for task in (work, gone):
            if not task.done():
                task.cancel()
        with suppress(asyncio.CancelledError):
            await gone
        del work, gone  # an error would keep this frame, and so the body, alive until a collection


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _sent(answer: Answer, send: Send) -> None:
    length = str(len(answer.body)).encode()
    headers = [*answer.headers.items(), (b"content-length", length)]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
