"""Replica of a served model: a process of Ray Serve that computes batches; needs Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ray import serve

from delegraph.scale.predictor import Predictor
from delegraph.scale.rows import Columns, row_count
from delegraph.scale.serving.batches import Answer, ServedBatches


def _rows(requests: Sequence[Columns]) -> int:
    """Return the total number of rows of *requests*, which Ray Serve limits in a batch."""
    return sum(map(row_count, requests))


class Replica:
    """Answers requests in batches; delegates are prepared before the first request.

    Args:
        predictor: predictor that computes the rows, at most ``max_batch`` at a time.
        has_rows: whether a request's rows lie along the first axis of the model's inputs.
        max_latency: seconds that a request waits for other requests of its batch.
        only_loopback: whether the replica listens on loopback only.
    """

    def __init__(
        self, predictor: Predictor, has_rows: bool, max_latency: float, only_loopback: bool
    ) -> None:
        self._batches = ServedBatches(predictor, has_rows)
        self._together.set_max_batch_size(predictor.max_batch)
        self._together.set_batch_wait_timeout_s(max_latency)
        self._is_free = asyncio.Event()
        self._is_free.set()
        if only_loopback:
            _stay_on_loopback()
        self._batches.warm_up()

    async def answer(self, request: Columns) -> Answer:
        """Compute a request in a batch with others, and return its result.

        Ray Serve closes a batch after ``max_latency`` seconds, even if the previous batch is still
        being computed. So requests that arrive meanwhile wait here, and then share a batch.
        """
        await self._is_free.wait()
        answer: Answer = await self._together(request)
        return answer

    @serve.batch(batch_size_fn=_rows)
    async def _together(self, requests: list[Columns]) -> list[Answer]:
        self._is_free.clear()
        try:
            return await asyncio.to_thread(self._batches, requests)  # Ray Serve may refuse others
        finally:
            self._is_free.set()


def _stay_on_loopback() -> None:
    """Let the server that Ray Serve starts after this replica's constructor use loopback only.

    Ray Serve has no option for this, so one of its functions is replaced. If the function does not
    exist, nothing is changed.
    """
    from ray.serve._private import replica

    name = "add_port_to_grpc_server"
    add_port = getattr(replica, name, None)
    if add_port is not None:
        setattr(
            replica,
            name,
            lambda server, address: add_port(server, address.replace("[::]", "127.0.0.1")),
        )
