"""Serves a model by the Open Inference Protocol: KServe's endpoints, Ray Serve's replicas.

Needs ``pip install 'delegraph[serve]'``. The command ``delegraph serve`` runs :func:`serve`. A
replica is a process that computes requests. ``serve_protocol.py`` has the endpoints,
``serve_replica.py`` and ``serve_batches.py`` the work of a replica, ``serve_tensors.py`` the
tensors of requests.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delegraph.errors import ArgumentError, PredictionError, in_words
from delegraph.scale.extras import require_extra
from delegraph.scale.predictor import Predictor
from delegraph.scale.rows import Columns
from delegraph.scale.serving.batches import Answer
from delegraph.scale.serving.tensors import ServedSignature, served_signature

if TYPE_CHECKING:
    from delegraph.scale.serving.ray.protocol import ServedModel

DEPLOYMENT = "delegraph"
"""Name of the replicas' deployment in Ray Serve."""

MAX_MESSAGE = 64 * 2**20
"""Largest gRPC message in bytes; KServe's own limit, 8 MiB, is too small for some pictures."""

HEALTH_CHECK = 2.0
"""Seconds between Ray Serve's checks that a replica is alive."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of a server.

    Attributes:
        name: name of the model in the protocol's paths.
        max_latency: seconds that a request waits for other requests of its batch; >= 0.
        max_queued: largest number of requests that wait for a replica; further ones are refused. >=
            1.
        replicas: number of processes that compute; >= 1.
        http_port: port of REST.
        grpc_port: port of gRPC.
        grace: whole seconds that requests may still take when the server is told to stop.
        address: address of a Ray cluster. None means the value of ``RAY_ADDRESS``, or this machine.
    """

    name: str
    max_latency: float = 0.005
    max_queued: int = 64
    replicas: int = 1
    http_port: int = 8080
    grpc_port: int = 8081
    grace: int = 30
    address: str | None = None


def serve(
    predictor: Predictor, options: ServeOptions, on_ready: Callable[[], object] = lambda: None
) -> dict[str, int]:
    """Serve a model until SIGTERM or SIGINT, then answer the pending requests.

    Args:
        predictor: computes in each replica, at most ``max_batch`` rows together.
        options: options of the server.
        on_ready: is called when the server starts to answer requests.

    Returns:
        Number of requests that were ``"answered"``, ``"invalid"``, ``"refused"`` and ``"failed"``.

    Raises:
        ArgumentError: KServe or Ray is not installed, a port is taken, or the model has a tensor of
            a type that the protocol does not have.
        DelegraphError: the model cannot be loaded.
        PredictionError: no replica can be made.
    """
    require_extra("serving", "serve", "kserve", "ray")
    _require_free(options.http_port)
    _require_free(options.grpc_port)
    with predictor:  # errors show here, and replicas find compiled kernels in the cache
        signature = served_signature(
            predictor.input_columns(), predictor.output_columns(), predictor.max_batch
        )
    with _no_command_line():
        from delegraph.scale.serving.ray.protocol import ServedModel, protocol_server

    model = ServedModel(options.name, signature)
    replicas = _Replicas(predictor, signature, options, model, on_ready)
    replicas.connect()  # this starts processes, which is not possible while a gRPC server runs
    try:
        server = protocol_server(
            model, replicas.is_ready, options.http_port, options.grpc_port, options.grace
        )
        replicas.start()
        server.start([])
    finally:
        replicas.stop()
    return model.outcomes


@contextmanager
def _no_command_line() -> Iterator[None]:
    """Hide the command line's arguments while the block runs, because KServe would parse them."""
    words = sys.argv
    sys.argv = [
        words[0],
        f"--grpc_max_send_message_length={MAX_MESSAGE}",
        f"--grpc_max_receive_message_length={MAX_MESSAGE}",
    ]
    try:
        yield
    finally:
        sys.argv = words


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise ArgumentError(
                f"port {port} cannot be used: {error.strerror}; name another one"
            ) from error


class _Replicas:
    """Ray Serve's replicas, which start while the endpoints already answer."""

    def __init__(
        self,
        predictor: Predictor,
        signature: ServedSignature,
        options: ServeOptions,
        model: ServedModel,
        on_ready: Callable[[], object],
    ) -> None:
        self._predictor = predictor
        self._signature = signature
        self._options = options
        self._model = model
        self._on_ready = on_ready
        self._handle: Any = None
        self._error: Exception | None = None
        self._is_stopping = False

    def connect(self) -> None:
        """Start Ray on this machine, or join a cluster.

        Raises:
            PredictionError: the connection fails.
        """
        import ray

        address, cpus = self._options.address or os.environ.get("RAY_ADDRESS"), None
        if not address:
            address = "local"  # otherwise Ray joins any cluster that happens to run on this machine
            cpus = max(os.cpu_count() or 1, self._options.replicas * self._threads())
            os.environ.setdefault("RAY_worker_niceness", "0")  # else others are served first
        try:
            ray.init(address, num_cpus=cpus, include_dashboard=False, logging_level="WARNING")
        except Exception as error:  # Ray raises errors of many types
            raise PredictionError(f"Ray cannot be started or reached: {error}") from error

    def start(self) -> None:
        """Start the replicas in a new thread."""
        threading.Thread(target=self._started, name="delegraph-replicas", daemon=True).start()

    def _started(self) -> None:
        try:
            self._handle = self._deployed()
        except Exception as error:  # noqa: BLE001  # whatever Ray raises ends the server
            self._error = error
            if not self._is_stopping:
                os.kill(os.getpid(), signal.SIGTERM)
            return
        self._model.compute = self._compute
        self._on_ready()

    def _threads(self) -> int:
        return self._predictor.setup.threads or 1

    def _deployed(self) -> Any:
        from ray import serve

        from delegraph.scale.serving.ray.replica import Replica

        options = self._options
        quiet = {"log_level": "WARNING", "enable_access_log": False}
        serve.start(proxy_location="Disabled", logging_config=quiet)
        logging.getLogger("ray.serve").setLevel(logging.WARNING)  # in this process
        deployment = serve.deployment(
            Replica,
            name=DEPLOYMENT,
            num_replicas=options.replicas,
            ray_actor_options={"num_cpus": self._threads()},
            max_ongoing_requests=2 * self._predictor.max_batch,  # one batch computes, one fills
            max_queued_requests=options.max_queued,
            health_check_period_s=HEALTH_CHECK,
            graceful_shutdown_timeout_s=options.grace,
            max_constructor_retry_count=1,
            logging_config=quiet,
        )
        bound = deployment.bind(self._predictor, self._signature.has_rows, options.max_latency)
        return serve.run(bound, name=self._app(), route_prefix=None)

    def _app(self) -> str:
        return f"delegraph-{self._options.name}"

    async def is_ready(self) -> bool:
        """Return whether a replica is running."""
        return self._handle is not None and await asyncio.to_thread(self._is_running)

    def _is_running(self) -> bool:
        from ray import serve

        app = serve.status().applications.get(self._app())
        states = app.deployments[DEPLOYMENT].replica_states if app else {}
        return bool(states.get("RUNNING"))

    async def _compute(self, columns: Columns) -> Answer:
        """Return the answer of a replica that Ray Serve chooses."""
        from kserve.errors import InferenceError
        from ray.exceptions import RayActorError, RayTaskError
        from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError

        from delegraph.scale.serving.ray.protocol import Unavailable

        try:
            answer: Answer = await self._handle.answer.remote(columns)
        except BackPressureError as error:
            raise Unavailable(
                f"too many requests: {self._options.max_queued} wait already; send it again later"
            ) from error
        except (DeploymentUnavailableError, RayActorError) as error:
            raise Unavailable(
                "the replica has ended that had the request; send it again"
            ) from error
        except RayTaskError as error:
            raise InferenceError(in_words(error.cause)) from error
        return answer

    def stop(self) -> None:
        """Stop the replicas.

        Raises:
            PredictionError: the replicas could not be started.
        """
        import ray
        from ray import serve

        self._is_stopping = True
        if self._error is not None:
            ray.shutdown()
            raise PredictionError(f"no replica can be made: {self._error}") from self._error
        if self._handle is not None:
            serve.delete(self._app())
        ray.shutdown()
