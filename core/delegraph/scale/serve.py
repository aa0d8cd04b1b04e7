"""Serves a model to many clients by the Open Inference Protocol, REST and gRPC.

Needs ``pip install 'delegraph[serve]'``. The command ``delegraph serve`` runs :func:`serve`. The
folder ``serving`` has the parts of the server: requests, endpoints, and the engines that compute.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import nullcontext, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from delegraph.errors import DelegraphError
from delegraph.scale.extras import require_extra
from delegraph.scale.predictor import Predictor
from delegraph.scale.serving.options import ServeOptions as ServeOptions

if TYPE_CHECKING:
    from delegraph.scale.serving.engines.ray_engine import RayCluster
    from delegraph.scale.serving.model_files import ModelFile
    from delegraph.scale.serving.served_model import Engine, Models


def serve(
    predictor: Predictor, options: ServeOptions, on_ready: Callable[[], object] = lambda: None
) -> dict[str, int]:
    """Serve a model until SIGTERM or SIGINT, then answer the pending requests.

    Args:
        predictor: predictor that computes the rows, at most ``max_batch`` at a time.
        options: options of the server.
        on_ready: function that is called when the server starts to answer requests.

    Returns:
        Number of requests that were ``"answered"``, ``"invalid"``, ``"refused"`` and ``"failed"``.

    Raises:
        ArgumentError: a package is not installed, an address cannot be used, or the protocol lacks
            the type of one of the model's tensors.
        DelegraphError: the model cannot be loaded.
        PredictionError: Ray cannot be started or reached, or no replica can be made.
    """
    packages = ("grpc", "google.protobuf", "httptools", "prometheus_client", "uvicorn")
    require_extra("serving", "serve", *packages)
    options.addresses.require_usable()
    cluster = _cluster(options)
    models = _models(predictor, options, cluster)
    with cluster or nullcontext():
        return asyncio.run(_Serving(models, options, on_ready).run())


def _cluster(options: ServeOptions) -> RayCluster | None:
    if not options.needs_ray:
        return None
    require_extra("serving by several processes", "serve-ray", "ray")
    from delegraph.scale.serving.engines.ray_engine import RayCluster

    return RayCluster(options)


def _models(predictor: Predictor, options: ServeOptions, cluster: RayCluster | None) -> Models:
    """Return the models to serve; errors of a single model are raised before the server starts."""
    from delegraph.scale.serving.one_model import OneModel

    offered = options.offered
    if offered is None:
        return OneModel(options.name, _engine(predictor, options, options.name, cluster))
    from delegraph.scale.serving.repository import Repository

    offered.find()  # raises errors about all of them
    numbers = count()  # a rewritten version exists twice for a moment

    def opened(file: ModelFile) -> Engine:
        name = "-".join(filter(None, (file.name, file.version, str(next(numbers)))))
        return _engine(predictor.replaced(model=file.path), options, name, cluster)

    return Repository(offered, opened)


def _engine(
    predictor: Predictor, options: ServeOptions, name: str, cluster: RayCluster | None
) -> Engine:
    """Return the engine of the model *name*, which computes its requests.

    The engine is on *cluster* if given, else in this process. Errors of the model are raised here,
    before the server listens.
    """
    if cluster is not None:
        from delegraph.scale.serving.engines.ray_engine import RayEngine

        return RayEngine(predictor, options, name, cluster)
    from delegraph.scale.serving.engines.local_engine import LocalEngine

    return LocalEngine(predictor, options.max_latency, options.max_queued)


class _Serving:
    """A running server: starts models and endpoints, and stops them at a signal."""

    def __init__(
        self, models: Models, options: ServeOptions, on_ready: Callable[[], object]
    ) -> None:
        self._models = models
        self._options = options
        self._on_ready = on_ready

    async def run(self) -> dict[str, int]:
        from delegraph.scale.serving.endpoints.access_log import AccessLog
        from delegraph.scale.serving.endpoints.server import Server

        options, models = self._options, self._models
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
            await models.stop()
            log.close()
        return models.outcomes()

    async def _started(self) -> None:
        await self._models.start()
        if await self._models.is_ready():
            self._on_ready()


def _stop_signal() -> asyncio.Future[Any]:
    """Return a future that is done when this process receives a signal to stop."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[Any] = loop.create_future()

    def tell() -> None:
        if not told.done():
            told.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(tell))
    return told
