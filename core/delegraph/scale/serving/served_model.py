"""A model for the endpoints: its metadata, and answers to decoded requests."""

from __future__ import annotations

import time
import uuid
from typing import Any, Protocol

from delegraph.errors import ArgumentError, DelegraphError, PredictionError, in_words
from delegraph.scale.rows import Columns
from delegraph.scale.serving.batches import Answer
from delegraph.scale.serving.metrics import ModelMetrics
from delegraph.scale.serving.refusals import Kind, Refusal, invalid
from delegraph.scale.serving.requests import InferRequest, InferResponse, OutputTensor
from delegraph.scale.serving.tensors import ServedSignature


class Engine(Protocol):
    """Interface of an engine that computes a model's requests: this process, or Ray Serve.

    Attributes:
        signature: inputs and outputs of the model.
    """

    signature: ServedSignature

    async def start(self) -> None:
        """Prepare the delegates, then accept requests.

        Raises:
            DelegraphError: the model or a delegate fails.
        """

    async def stop(self) -> None:
        """Stop after the requests that are being computed."""

    async def answer(self, columns: Columns) -> Answer:
        """Return the result of a request; *columns* are its rows.

        Raises:
            Refusal: too many requests wait, or the engine cannot compute now.
            DelegraphError: the batch failed, but not because of a single request.
        """

    async def is_ready(self) -> bool:
        """Whether requests are computed without delay, because delegates are prepared."""


class ServedModel:
    """A model with a signature and an engine.

    Args:
        name: name of the model in the protocol's paths.
        version: version of the model; empty if it has none.
        engine: engine that computes the requests.

    Attributes:
        signature: names, types and shapes of the tensors in requests and answers.
        metrics: metrics of the model.
    """

    def __init__(self, name: str, version: str, engine: Engine) -> None:
        self.name = name
        self.version = version
        self.signature = engine.signature
        self.engine = engine
        self.metrics = ModelMetrics(name)

    def metadata(self, versions: list[str] | None = None) -> dict[str, Any]:
        """Return the protocol's metadata of the model.

        Args:
            versions: all versions that are served; by default, this one.
        """
        own = [self.version] if self.version else []
        return {
            "name": self.name,
            "versions": own if versions is None else versions,
            "platform": "delegraph_tflite",
            "inputs": [_described(tensor) for tensor in self.signature.inputs.values()],
            "outputs": [_described(tensor) for tensor in self.signature.outputs.values()],
        }

    async def is_ready(self) -> bool:
        """Whether requests are computed without delay, because delegates are prepared."""
        return await self.engine.is_ready()

    async def infer(self, request: InferRequest) -> InferResponse:
        """Return the answer to a request.

        Raises:
            Refusal: the request does not fit the signature, the model fails on it, or the engine
                cannot compute now.
        """
        outcome, start = "refused", time.perf_counter()  # from a request that the client cancelled
        with self.metrics.in_progress.track_inprogress():
            try:
                response = await self._answered(request)
                outcome = "answered"
            except Refusal as refusal:
                outcome = refusal.outcome
                raise
            except DelegraphError as error:
                outcome = "failed"
                raise Refusal(Kind.FAILED, in_words(error)) from error
            finally:
                self.metrics.count_request(outcome, time.perf_counter() - start)
        return response

    async def _answered(self, request: InferRequest) -> InferResponse:
        if request.model not in ("", self.name):
            raise invalid(
                f"the request states model {request.model!r}, expected {self.name!r} as in its path"
            )
        try:
            columns = self.signature.columns(request.inputs)
            wanted = self.signature.wanted(list(request.outputs))
        except ArgumentError as error:
            raise invalid(str(error)) from error
        answer = await self.engine.answer(columns)
        if answer.batch is not None:
            self.metrics.count_batch(answer.batch)
        if answer.error:
            raise Refusal(Kind.FAILED, answer.error)
        try:
            tensors = self.signature.tensors(answer.rows)
        except PredictionError as error:
            raise Refusal(Kind.FAILED, str(error)) from error
        outputs = (
            OutputTensor(name, self.signature.outputs[own].datatype, tensors[own])
            for name, own in wanted.items()
        )
        return InferResponse(
            self.name, self.version, request.id or str(uuid.uuid4()), tuple(outputs)
        )


def _described(tensor: Any) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}


OUTCOMES = ("answered", "invalid", "refused", "failed")
"""Possible outcomes of a request, which metrics count."""


class Models(Protocol):
    """Interface of a server's models: a single model, or a repository."""

    async def start(self) -> None:
        """Load the models, and prepare their delegates.

        Raises:
            DelegraphError: the server has nothing to serve.
        """

    async def stop(self) -> None:
        """Stop after the requests that are being computed."""

    def find(self, name: str, version: str = "") -> ServedModel:
        """Return a model.

        An empty *version* means the newest.

        Raises:
            Refusal: the model or version does not exist or could not be loaded.
        """

    def metadata(self, name: str, version: str = "") -> dict[str, Any]:
        """Return the protocol's metadata of the model *name*; an empty *version* means the newest.

        Raises:
            Refusal: the model or version does not exist or could not be loaded.
        """

    async def is_ready(self) -> bool:
        """Whether all models that could be loaded are ready."""

    def index(self, only_ready: bool = False) -> list[dict[str, str]]:
        """Return name, version, state and reason of each model, or only of ready models."""

    async def load(self, name: str) -> None:
        """Load the model *name* of the repository, or load it again.

        Raises:
            Refusal: the model does not exist or is damaged, or the server's models are fixed.
        """

    async def unload(self, name: str) -> None:
        """Unload the model *name*.

        Raises:
            Refusal: the model does not exist, or the server's models are fixed.
        """

    def outcomes(self) -> dict[str, int]:
        """Return the number of requests by outcome."""
