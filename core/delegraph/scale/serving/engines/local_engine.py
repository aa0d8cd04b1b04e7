"""The engine that computes requests in this process."""

from __future__ import annotations

import asyncio

from delegraph.scale.predictor import Predictor
from delegraph.scale.rows import Columns
from delegraph.scale.serving.batches import Answer, ServedBatches
from delegraph.scale.serving.engines.batch_queue import BatchQueue
from delegraph.scale.serving.engines.daemon_thread import DaemonThread
from delegraph.scale.serving.refusals import Kind, Refusal
from delegraph.scale.serving.tensors import ServedSignature, served_signature

_CLOSING = 5.0
"""Seconds to wait until the model is closed, since a delegate may hang."""


class LocalEngine:
    """Computes the requests of one model in a thread of this process.

    Args:
        predictor: predictor that computes the rows, at most ``max_batch`` at a time; its model is
            loaded now.
        max_latency: seconds that a request waits for other requests of its batch.
        max_queued: largest number of waiting requests.

    Attributes:
        signature: inputs and outputs of the model.

    Raises:
        ArgumentError: the protocol lacks the type of one of the model's tensors.
        DelegraphError: the model cannot be loaded.
    """

    def __init__(self, predictor: Predictor, max_latency: float, max_queued: int) -> None:
        own = predictor.replaced(batching=predictor.batching, on_error="column")
        self._predictor = own
        self.signature: ServedSignature = served_signature(
            own.input_columns(), own.output_columns(), own.max_batch
        )
        self._batches = ServedBatches(own, self.signature.has_rows)
        self._max_latency, self._max_queued = max_latency, max_queued
        self._thread = DaemonThread("delegraph-batches")
        self._queue: BatchQueue | None = None

    async def start(self) -> None:
        """Compute a batch of each size to prepare the delegates, then accept requests.

        Raises:
            DelegraphError: the model or a delegate fails.
        """
        await self._thread.call(self._batches.warm_up)
        most = self._predictor.max_batch
        self._queue = BatchQueue(
            self._thread, self._batches, most, self._max_latency, self._max_queued
        )
        self._queue.start()

    async def stop(self) -> None:
        """Stop after the batch that is being computed, and close the model."""
        if self._queue is not None:
            await self._queue.stop()
            self._queue = None
        closing = self._thread.call(self._predictor.close)
        self._thread.end()
        await asyncio.wait([closing], timeout=_CLOSING)

    async def is_ready(self) -> bool:
        """Whether the delegates are prepared for all batch sizes."""
        return self._queue is not None

    async def answer(self, columns: Columns) -> Answer:
        """Compute *columns*, the rows of a request, in a batch with others; return the result.

        Raises:
            Refusal: delegates are not prepared yet, or too many requests wait.
            DelegraphError: the batch failed, but not because of a single request.
        """
        if self._queue is None:
            raise Refusal(Kind.UNAVAILABLE, "the model is not ready: delegates are being prepared")
        return await self._queue.answer(columns)
