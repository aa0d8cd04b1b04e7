"""The engine whose requests replicas of Ray Serve compute; needs Ray."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Any

from delegraph.errors import PredictionError, in_words
from delegraph.scale.predictor import Predictor
from delegraph.scale.rows import Columns
from delegraph.scale.serving.batches import Answer
from delegraph.scale.serving.refusals import Kind, Refusal
from delegraph.scale.serving.tensors import served_signature

if TYPE_CHECKING:
    from delegraph.scale.serving.options import ServeOptions

DEPLOYMENT = "delegraph"
"""Name of the deployment in Ray Serve to which the replicas belong."""

ONLY_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Name of the environment variable with which Ray listens on loopback only, if it is ``0``."""

HEALTH_CHECK = 2.0
"""Seconds between Ray Serve's checks that a replica is alive."""


class RayCluster:
    """The Ray cluster that computes: the user's, or this process's own on loopback only.

    The cluster serves models within a ``with`` block, which must begin before a gRPC server runs,
    since Ray starts processes.

    Args:
        options: options of the server.

    Attributes:
        is_own: whether this process has started the cluster.
    """

    def __init__(self, options: ServeOptions) -> None:
        self._address = options.ray_address or os.environ.get("RAY_ADDRESS") or "local"
        self.is_own = self._address == "local"  # otherwise Ray joins any cluster on this machine

    def __enter__(self) -> None:
        """Start or join the cluster.

        Raises:
            PredictionError: Ray cannot be started or reached.
        """
        if self.is_own:
            # Otherwise other applications are served first.
            os.environ.setdefault("RAY_worker_niceness", "0")
            os.environ[ONLY_LOOPBACK] = "0"  # Ray reads the variable when it is imported
        import ray

        try:
            ray.init(self._address, include_dashboard=False, logging_level="WARNING")
        except Exception as error:  # Ray raises errors of many types
            raise PredictionError(f"Ray cannot be started or reached: {error}") from error

    def __exit__(self, *exc_info: object) -> None:
        """End this process's cluster, or the connection to the user's cluster."""
        import ray

        ray.shutdown()


class RayEngine:
    """Lets replicas, each of which is a process, compute the requests of one model.

    Args:
        predictor: predictor that computes the rows in each replica, at most ``max_batch`` at a
            time.
        options: options of the server.
        name: name of the model in Ray Serve, unique among all engines.
        cluster: cluster that runs the replicas.

    Attributes:
        signature: inputs and outputs of the model.

    Raises:
        ArgumentError: the protocol lacks the type of one of the model's tensors.
        DelegraphError: the model cannot be loaded.
    """

    def __init__(
        self, predictor: Predictor, options: ServeOptions, name: str, cluster: RayCluster
    ) -> None:
        with predictor:  # errors appear here, and replicas find compiled kernels in the cache
            self.signature = served_signature(
                predictor.input_columns(), predictor.output_columns(), predictor.max_batch
            )
        self._predictor = predictor
        self._options = options
        self._app = f"delegraph-{name}"
        self._cluster = cluster
        self._handle: Any = None

    async def start(self) -> None:
        """Start the replicas, and wait until they are ready.

        Raises:
            PredictionError: no replica can be made.
        """
        try:
            self._handle = await asyncio.to_thread(self._deployed)
        except Exception as error:  # Ray raises errors of many types
            raise PredictionError(f"no replica can be made: {error}") from error

    def _deployed(self) -> Any:
        from ray import serve

        from delegraph.scale.serving.engines.replica import Replica

        options = self._options
        quiet = {"log_level": "WARNING", "enable_access_log": False}
        serve.start(proxy_location="Disabled", logging_config=quiet)
        logging.getLogger("ray.serve").setLevel(logging.WARNING)  # in this process
        deployment = serve.deployment(
            Replica,
            name=DEPLOYMENT,
            num_replicas=options.replicas,
            ray_actor_options={"num_cpus": 0 if self._cluster.is_own else self._threads()},
            # One batch computes while another one fills.
            max_ongoing_requests=2 * self._predictor.max_batch,
            max_queued_requests=options.max_queued,
            health_check_period_s=HEALTH_CHECK,
            graceful_shutdown_timeout_s=options.grace,
            max_constructor_retry_count=1,
            logging_config=quiet,
        )
        bound = deployment.bind(
            self._predictor, self.signature.has_rows, options.max_latency, self._cluster.is_own
        )
        return serve.run(bound, name=self._app, route_prefix=None)

    def _threads(self) -> int:
        return self._predictor.setup.threads or 1

    async def stop(self) -> None:
        """Stop the replicas."""
        if self._handle is not None:
            await asyncio.to_thread(self._delete)

    def _delete(self) -> None:
        from ray import serve

        serve.delete(self._app)

    async def is_ready(self) -> bool:
        """Whether a replica is running."""
        return self._handle is not None and await asyncio.to_thread(self._is_running)

    def _is_running(self) -> bool:
        from ray import serve

        app = serve.status().applications.get(self._app)
        states = app.deployments[DEPLOYMENT].replica_states if app else {}
        return bool(states.get("RUNNING"))

    async def answer(self, columns: Columns) -> Answer:
        """Let a replica compute *columns*, the rows of a request; return the result.

        Raises:
            Refusal: no replica is prepared yet, too many requests wait, or the replica has ended.
        """
        from ray.exceptions import RayActorError, RayTaskError
        from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError

        if self._handle is None:
            raise Refusal(Kind.UNAVAILABLE, "the model is not ready: replicas are being started")
        try:
            answer: Answer = await self._handle.answer.remote(columns)
        except BackPressureError as error:
            raise Refusal(
                Kind.UNAVAILABLE,
                f"too many requests: {self._options.max_queued} wait already; send it again later",
            ) from error
        except (DeploymentUnavailableError, RayActorError) as error:
            raise Refusal(
                Kind.UNAVAILABLE, "the replica has ended that had the request; send it again"
            ) from error
        except RayTaskError as error:
            raise Refusal(Kind.FAILED, in_words(error.cause)) from error
        return answer
