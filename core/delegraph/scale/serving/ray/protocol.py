"""The Open Inference Protocol for a served model: KServe's REST and gRPC. Needs KServe.

KServe parses the command line of any program that imports it. So only
:func:`delegraph.scale.serve.serve` imports this module, and hides Delegraph's command line
meanwhile.
"""

from __future__ import annotations

import logging
import struct
import uuid
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import kserve
import kserve.model_server
import numpy as np
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from kserve.constants.constants import INFERENCE_CONTENT_LENGTH_HEADER
from kserve.errors import (
    InferenceError,
    InvalidInput,
    ModelNotFound,
    ModelNotReady,
    ServerNotReady,
)
from kserve.protocol.dataplane import DataPlane
from kserve.protocol.infer_type import InferOutput, InferRequest, InferResponse
from kserve.protocol.model_repository_extension import ModelRepositoryExtension
from numpy.typing import NDArray
from prometheus_client import Counter, Gauge, Histogram

import delegraph
from delegraph.errors import ArgumentError, PredictionError
from delegraph.scale.rows import Columns
from delegraph.scale.serving.batches import Answer
from delegraph.scale.serving.tensors import GivenTensor, ServedSignature

_REQUESTS = Counter(
    "delegraph_requests", "Requests by what became of them.", ["model_name", "outcome"]
)
_IN_PROGRESS = Gauge(
    "delegraph_requests_in_progress", "Requests that are not answered yet.", ["model_name"]
)
_BATCH_ROWS = Histogram(
    "delegraph_batch_rows",
    "Rows that were computed together.",
    ["model_name"],
    buckets=[2**power for power in range(9)],
)
_BATCH_SECONDS = Histogram("delegraph_batch_seconds", "What a batch took.", ["model_name"])
_INCIDENTS = Counter(
    "delegraph_delegate_incidents",
    "Failures of delegates after which Delegraph went on.",
    ["model_name"],
)


class Unavailable(ModelNotReady):
    """Error: a request cannot be computed now, but may be sent again (503, UNAVAILABLE)."""

    def __init__(self, reason: str) -> None:
        super().__init__("")
        self.error_msg = self.reason = reason


class Unsupported(NotImplementedError):
    """Error: this server does not support the operation (501, UNIMPLEMENTED)."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ServedModel(kserve.Model):
    """A KServe model whose requests are computed by replicas.

    Args:
        name: name of the model in the protocol's paths.
        signature: names, types and shapes of the tensors in requests and answers.

    Attributes:
        compute: sends the rows of a request to a replica; None until a replica is warm.
        outcomes: number of requests that were ``answered``, ``invalid``, ``refused``, ``failed``.
    """

    def __init__(self, name: str, signature: ServedSignature) -> None:
        super().__init__(name)
        self._signature = signature
        self.compute: Callable[[Columns], Awaitable[Answer]] | None = None
        self.outcomes = dict.fromkeys(("answered", "invalid", "refused", "failed"), 0)

    async def healthy(self) -> bool:
        """Return whether requests can be computed."""
        return self.compute is not None

    def load(self) -> bool:
        """Raise Unavailable; KServe calls this for requests before a replica is ready."""
        raise Unavailable(f"model {self.name!r} is not ready: its replicas are being started")

    def get_input_types(self) -> list[dict[str, Any]]:
        """Return the metadata of the inputs."""
        return [tensor.to_json() for tensor in self._signature.inputs.values()]

    def get_output_types(self) -> list[dict[str, Any]]:
        """Return the metadata of the outputs."""
        return [tensor.to_json() for tensor in self._signature.outputs.values()]

    async def predict(
        self,
        payload: InferRequest,
        headers: dict[str, str] | None = None,
        response_headers: dict[str, str] | None = None,
    ) -> InferResponse:
        """Return the answer to a request.

        Raises:
            InvalidInput: the request does not fit the signature.
            InferenceError: the model fails on it.
            Unavailable: too many requests are waiting, or the replica has ended.
        """
        outcome = "failed"
        try:
            with _IN_PROGRESS.labels(self.name).track_inprogress():
                response = await self._predicted(payload)
            outcome = "answered"
        except InvalidInput:
            outcome = "invalid"
            raise
        except Unavailable:
            outcome = "refused"
            raise
        finally:
            self.outcomes[outcome] += 1
            _REQUESTS.labels(self.name, outcome).inc()
        return response

    async def _predicted(self, request: InferRequest) -> InferResponse:
        if self.compute is None:
            self.load()
        try:
            columns = self._signature.columns({str(t.name): _given(t) for t in request.inputs})
            wanted = self._signature.wanted([out.name for out in request.request_outputs or ()])
        except ArgumentError as error:
            raise InvalidInput(str(error)) from error
        answer = await self.compute(columns)
        self._count(answer)
        if answer.error:
            raise InferenceError(answer.error)
        try:
            tensors = self._signature.tensors(answer.rows)
        except PredictionError as error:
            raise InferenceError(str(error)) from error
        return self._response(request, {name: tensors[name] for name in wanted})

    def _count(self, answer: Answer) -> None:
        if answer.batch is not None:
            _BATCH_ROWS.labels(self.name).observe(answer.batch.rows)
            _BATCH_SECONDS.labels(self.name).observe(answer.batch.seconds)
            _INCIDENTS.labels(self.name).inc(answer.batch.incidents)

    def _response(self, request: InferRequest, tensors: Columns) -> InferResponse:
        outputs = []
        for name, values in tensors.items():
            datatype = self._signature.outputs[name].datatype
            output = InferOutput(name, list(values.shape), datatype, values)
            if request.from_grpc:
                output.set_data_from_numpy(values, binary_data=True)
            outputs.append(output)
        return InferResponse(
            request.id or str(uuid.uuid4()),
            self.name,
            outputs,
            use_binary_outputs=request.use_binary_outputs,
            requested_outputs=request.request_outputs,
        )


_DAMAGED = (
    *(AttributeError, KeyError, OverflowError, TypeError, ValueError),  # InvalidInput is the last
    *(InferenceError, struct.error),
)
"""Exceptions that KServe raises for requests with missing or wrong fields."""


def _given(tensor: Any) -> GivenTensor:
    """Return a tensor of a request, after a check that its numbers fit its datatype.

    Raises:
        InvalidInput: its data have another datatype or size than it states.
    """
    try:
        values = tensor.as_numpy()
        numbers = tensor.data  # an empty list where the gRPC request has bytes
        if values.dtype.kind in "biu" and isinstance(numbers, list) and numbers:
            _require_same(numbers, values)
        return GivenTensor(tensor.datatype, values)
    except _DAMAGED as error:
        raise InvalidInput(
            f"input {tensor.name!r}: its data are no {tensor.datatype} of shape {tensor.shape}: "
            f"{error}"
        ) from error


def _require_same(numbers: list[Any], values: NDArray[Any]) -> None:
    """Check that the conversion to integers changed no number, as it changes 1.5 to 1."""
    if not np.array_equal(np.ravel(numbers), np.ravel(values)):
        raise ValueError("it has other numbers")


class ServedData(DataPlane):
    """KServe's data plane for a server that may not be ready yet.

    Args:
        model_registry: KServe's registry of models.
        is_ready: returns whether a replica is warm.
    """

    def __init__(self, model_registry: Any, is_ready: Callable[[], Awaitable[bool]]) -> None:
        super().__init__(model_registry)
        self._is_ready = is_ready

    def metadata(self) -> dict[str, Any]:
        """Return name, version and extensions of the server."""
        extensions = ["binary_tensor_data"]
        return {"name": "delegraph", "version": delegraph.__version__, "extensions": extensions}

    async def ready(self) -> bool:
        """Return whether requests would be answered."""
        return await self._is_ready()

    def decode_inference_request(self, body: Any, headers: Any, model_name: str) -> InferRequest:
        """Return a decoded REST request; a damaged request is reported as the client's error."""
        if isinstance(body, bytes):  # without this header, the body is JSON only
            headers = {INFERENCE_CONTENT_LENGTH_HEADER: len(body), **headers}
        try:
            return super().decode_inference_request(body, headers, model_name)
        except InvalidInput:
            raise
        except _DAMAGED as error:
            raise InvalidInput(f"not a request of the protocol: {error!r}") from error


class FixedModels(ModelRepositoryExtension):
    """Refuses to load and unload models, which the protocol would let any client do."""

    async def load(self, model_name: str) -> Any:
        """Raise Unsupported, as requests cannot load models."""
        raise Unsupported("models are not loaded by requests")

    async def unload(self, model_name: str) -> Any:
        """Raise Unsupported, as requests cannot unload models."""
        raise Unsupported("models are not unloaded by requests")


async def _not_a_request(request: Request, error: Exception) -> JSONResponse:
    """Return the protocol's error response for a request that FastAPI rejects."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    places = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in found)
    return JSONResponse({"error": f"not a request of the protocol: {'; '.join(places)}"}, 400)


_EXPECTED = (
    InvalidInput,
    InferenceError,
    ModelNotFound,
    ModelNotReady,
    ServerNotReady,
    Unsupported,
)
"""Exceptions that clients cause by wrong or early requests."""


class _Expected(logging.Filter):
    """Log filter that drops client errors, which KServe logs with a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, _EXPECTED)


def protocol_server(
    model: ServedModel,
    is_ready: Callable[[], Awaitable[bool]],
    http_port: int,
    grpc_port: int,
    grace: int,
) -> kserve.ModelServer:
    """Return a server; its ``start([])`` serves until the process is stopped.

    Args:
        model: the model to serve.
        is_ready: returns whether a replica is warm.
        http_port: port of REST.
        grpc_port: port of gRPC.
        grace: seconds that requests may still take when the server is told to stop.
    """
    server = kserve.ModelServer(
        http_port=http_port,
        grpc_port=grpc_port,
        enable_latency_logging=False,
        grace_period=grace,
    )
    for name in ("kserve", "kserve.trace", "uvicorn", "uvicorn.access", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.WARNING)  # else a line for each request
    logging.getLogger("kserve").addFilter(_Expected())
    warnings.filterwarnings("ignore", "ORJSONResponse is deprecated")  # KServe uses it
    server.dataplane = ServedData(server.registered_models, is_ready)
    server.model_repository_extension = FixedModels(server.registered_models)
    server.register_model(model)
    kserve.model_server.app.add_exception_handler(RequestValidationError, _not_a_request)
    return server
