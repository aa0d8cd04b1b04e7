"""Serves a model to many clients by the Open Inference Protocol, REST and gRPC.

Needs ``pip install 'delegraph[serve]'``. The command ``delegraph serve`` runs :func:`serve`. The
folder ``serving`` has the parts: what a request holds, the endpoints, and the engines that compute.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from delegraph.errors import DelegraphError
from delegraph.scale.extras import require_extra
from delegraph.scale.predictor import Predictor
from delegraph.scale.serving.endpoints.addresses import Addresses
from delegraph.scale.serving.limits import Limits

if TYPE_CHECKING:
    from delegraph.scale.serving.engines.engine import StartedEngine


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of a server.

    Attributes:
        name: name of the model in the protocol's paths.
        max_latency: seconds that a request waits for other requests of its batch; >= 0.
        max_queued: largest number of requests that wait to be computed; further ones are refused.
            >= 1.
        replicas: number of processes that compute; >= 1. More than one are replicas of Ray Serve.
        addresses: addresses and locks of the endpoints.
        limits: limits of what clients may send.
        access_log: path of the access log, ``-`` for standard output; None for no log.
        grace: whole seconds that requests may still take when the server is told to stop.
        ray_address: address of a Ray cluster whose nodes compute. None means the value of
            ``RAY_ADDRESS``, or this machine.
    """

    name: str
    max_latency: float = 0.005
    max_queued: int = 64
    replicas: int = 1
    addresses: Addresses = field(default_factory=Addresses)
    limits: Limits = field(default_factory=Limits)
    access_log: str | None = None
    grace: int = 30
    ray_address: str | None = None

    @property
    def needs_ray(self) -> bool:
        """Whether Ray Serve computes, and not this process."""
        return self.replicas > 1 or bool(self.ray_address or os.environ.get("RAY_ADDRESS"))


def serve(
    predictor: Predictor, options: ServeOptions, on_ready: Callable[[], object] = lambda: None
) -> dict[str, int]:
    """Serve a model until SIGTERM or SIGINT, then answer the pending requests.

    Args:
        predictor: computes the rows, at most ``max_batch`` together.
        options: options of the server.
        on_ready: is called when the server starts to answer requests.

    Returns:
        Number of requests that were ``"answered"``, ``"invalid"``, ``"refused"`` and ``"failed"``.

    Raises:
        ArgumentError: a package is not installed, an address cannot be used, or the model has a
            tensor of a type that the protocol does not have.
        DelegraphError: the model cannot be loaded.
        PredictionError: no replica can be made.
    """
    packages = ("grpc", "google.protobuf", "httptools", "prometheus_client", "uvicorn")
    require_extra("serving", "serve", *packages)
    options.addresses.require_usable()
    engine = _engine(predictor, options)
    return asyncio.run(_Serving(engine, options, on_ready).run())


def _engine(predictor: Predictor, options: ServeOptions) -> StartedEngine:
    """Return the engine; errors of the model show here, before anything listens."""
    if options.needs_ray:
        require_extra("serving by several processes", "serve-ray", "ray")
        from delegraph.scale.serving.engines.ray_engine import RayEngine

        return RayEngine(predictor, options)
    from delegraph.scale.serving.engines.local_engine import LocalEngine

    return LocalEngine(predictor, options.max_latency, options.max_queued)


class _Serving:
    """A server from start to stop."""

    def __init__(
        self, engine: StartedEngine, options: ServeOptions, on_ready: Callable[[], object]
    ) -> None:
        self._engine = engine
        self._options = options
        self._on_ready = on_ready

    async def run(self) -> dict[str, int]:
        from delegraph.scale.serving.endpoints.access_log import AccessLog
        from delegraph.scale.serving.endpoints.server import Server
        from delegraph.scale.serving.served_model import OneModel, ServedModel

        options, engine = self._options, self._engine
        models = OneModel(ServedModel(options.name, "", engine.signature, engine))
        log = AccessLog(options.access_log)
        server = Server(models, options.addresses, options.limits, log, options.grace)
        told = _stop_signal()
        await server.start()
        starting = asyncio.create_task(self._started())
        try:
            await asyncio.wait({told, starting}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await told
        finally:
            await server.stop()
            if not starting.done():
                starting.cancel()
            with suppress(asyncio.CancelledError, DelegraphError):
                await starting
            await engine.stop()
            log.close()
        return models.outcomes()

    async def _started(self) -> None:
        await self._engine.start()
        self._on_ready()


def _stop_signal() -> asyncio.Future[Any]:
    """Return a future that is done when this process is told to stop."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[Any] = loop.create_future()

    def tell() -> None:
        if not told.done():
            told.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(tell))
    return told
