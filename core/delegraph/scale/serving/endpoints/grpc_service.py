"""The gRPC service."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

import delegraph
from delegraph.scale.serving.endpoints.access_log import AccessLog
from delegraph.scale.serving.endpoints.application import EXTENSIONS
from delegraph.scale.serving.endpoints.token import Token
from delegraph.scale.serving.endpoints.tracing import traced
from delegraph.scale.serving.grpc_messages import SERVICE, message
from delegraph.scale.serving.grpc_protocol import model_of, write_message
from delegraph.scale.serving.parsing import LARGE, RequestReader
from delegraph.scale.serving.refusals import Kind, Refusal
from delegraph.scale.serving.served_model import Models

_LOG = logging.getLogger(__name__)

_OPEN = ("ServerLive", "ServerReady")
"""gRPC methods that need no token, because a cluster's probes call them."""


class GrpcService:
    """The gRPC methods of the protocol.

    Args:
        models: the served models.
        reader: object that decodes requests.
        token: token that requests must have.
        log: access log.
    """

    def __init__(self, models: Models, reader: RequestReader, token: Token, log: AccessLog) -> None:
        self._models = models
        self._reader = reader
        self._token = token
        self._log = log

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the handlers for a gRPC server."""
        calls: dict[str, Callable[[Any], Awaitable[Any]]] = {
            "ServerLive": self._live,
            "ServerReady": self._ready,
            "ServerMetadata": self._server,
            "ModelReady": self._model_ready,
            "ModelMetadata": self._metadata,
            "RepositoryIndex": self._index,
            "RepositoryModelLoad": self._load,
            "RepositoryModelUnload": self._unload,
        }
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                self._guarded(name, call),
                request_deserializer=message(f"{name}Request").FromString,
                response_serializer=lambda response: response.SerializeToString(),
            )
            for name, call in calls.items()
        }
        handlers["ModelInfer"] = grpc.unary_unary_rpc_method_handler(
            self._guarded("ModelInfer", self._infer)  # bytes, which it decodes itself
        )
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    def _guarded(self, name: str, call: Callable[[Any], Awaitable[Any]]) -> Callable[..., Any]:
        """Return a handler for method *name* that checks the token, calls *call*, and logs."""

        async def answered(request: Any, context: Any) -> Any:
            start, code = time.perf_counter(), "CANCELLED"
            headers = {
                key.encode(): value if isinstance(value, bytes) else value.encode()
                for key, value in context.invocation_metadata() or ()
            }
            try:
                if name not in _OPEN:
                    self._token.require(headers.get(b"authorization"))
                with traced(headers, name):
                    response = await call(request)
                code = "OK"
            except Refusal as refusal:
                code = refusal.kind.code
                await context.abort(grpc.StatusCode[code], refusal.reason)
            except Exception:  # noqa: BLE001 - the server goes on
                code = "INTERNAL"
                _LOG.exception("a request failed in the server")
                await context.abort(grpc.StatusCode.INTERNAL, "the server failed; its log says why")
            finally:
                if self._log.is_on:
                    seconds = round(time.perf_counter() - start, 6)
                    self._log.write(
                        protocol="grpc",
                        method=name,
                        status=code,
                        seconds=seconds,
                        client=context.peer(),
                    )
            return response

        return answered

    async def _live(self, request: Any) -> Any:
        return message("ServerLiveResponse")(live=True)

    async def _ready(self, request: Any) -> Any:
        return message("ServerReadyResponse")(ready=await self._models.is_ready())

    async def _server(self, request: Any) -> Any:
        return message("ServerMetadataResponse")(
            name="delegraph", version=delegraph.__version__, extensions=EXTENSIONS
        )

    async def _model_ready(self, request: Any) -> Any:
        model = self._models.find(request.name, request.version)
        return message("ModelReadyResponse")(ready=await model.is_ready())

    async def _metadata(self, request: Any) -> Any:
        return message("ModelMetadataResponse")(
            **self._models.metadata(request.name, request.version)
        )

    async def _infer(self, request: bytes) -> bytes:
        name, version = model_of(request)
        model = self._models.find(name, version)
        if len(request) < LARGE:
            decoded = await self._reader.grpc(request)
        else:
            async with self._reader.budget.held(len(request)):
                decoded = await self._reader.grpc(request)
        return write_message(await model.infer(decoded))

    async def _index(self, request: Any) -> Any:
        models = [message("ModelIndex")(**entry) for entry in self._models.index(request.ready)]
        return message("RepositoryIndexResponse")(models=models)

    async def _load(self, request: Any) -> Any:
        await self._models.load(_named(request))
        return message("RepositoryModelLoadResponse")()

    async def _unload(self, request: Any) -> Any:
        await self._models.unload(_named(request))
        return message("RepositoryModelUnloadResponse")()


def _named(request: Any) -> str:
    """Return the name of the model that *request* asks for.

    KServe's clients send the name in the field of the repository's name.
    """
    if not request.model_name and not request.repository_name:
        raise Refusal(Kind.INVALID, "the request has no model_name")
    name: str = request.model_name or request.repository_name
    return name
