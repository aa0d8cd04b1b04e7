"""The queue of a model's requests, and the thread that computes them in batches."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from delegraph.scale.rows import Columns, row_count
from delegraph.scale.serving.batches import Answer
from delegraph.scale.serving.engines.daemon_thread import DaemonThread
from delegraph.scale.serving.refusals import Kind, Refusal


@dataclass(slots=True)
class _Waiting:
    """A request that waits for its batch."""

    columns: Columns
    rows: int
    answer: asyncio.Future[Answer]
    since: float = field(default_factory=time.perf_counter)


class BatchQueue:
    """Computes requests in batches, one after the other, in a thread.

    Requests that arrive while a batch is computed wait for the next batch. Requests whose clients
    have disconnected leave the queue without being computed. All methods must be called in one
    event loop.

    Args:
        thread: thread that computes the batches.
        compute: function that returns the answers to requests with at most *max_rows* rows in
            total.
        max_rows: largest number of rows in a batch.
        max_latency: seconds that the free thread waits for more requests; it expects as many as
            were in the last batch or waited after it.
        max_queued: largest number of waiting requests; further requests are refused.
    """

    def __init__(
        self,
        thread: DaemonThread,
        compute: Callable[[Sequence[Columns]], Sequence[Answer]],
        max_rows: int,
        max_latency: float,
        max_queued: int,
    ) -> None:
        self._compute = compute
        self._max_rows = max_rows
        self._max_latency = max_latency
        self._max_queued = max_queued
        self._waiting: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()
        self._expected = 1
        self._thread = thread
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to compute; until this call, requests wait."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop after the batch that is being computed; reject the waiting requests."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for one in self._waiting:
            if not one.answer.done():
                one.answer.set_exception(Refusal(Kind.UNAVAILABLE, "the model is being unloaded"))
        self._waiting.clear()

    async def answer(self, columns: Columns) -> Answer:
        """Return the result of a request, after waiting until its rows *columns* are computed.

        Raises:
            Refusal: too many requests wait.
            DelegraphError: the request's batch failed, but not because of a single request.
        """
        if len(self._waiting) >= self._max_queued:
            self._drop_abandoned()
        if len(self._waiting) >= self._max_queued:
            raise Refusal(
                Kind.UNAVAILABLE,
                f"too many requests: {self._max_queued} wait already; send it again later",
            )
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(columns, row_count(columns), future))
        self._arrived.set()
        try:
            return await future
        finally:
            del future  # an error would keep this frame, and so the rows, alive until a collection

    def _drop_abandoned(self) -> None:
        self._waiting = deque(one for one in self._waiting if not one.answer.done())

    async def _run(self) -> None:
        while True:
            batch = await self._next_batch()
            queue_seconds = time.perf_counter() - batch[0].since
            requests = [one.columns for one in batch]
            try:
                answers = await self._thread.call(self._compute, requests)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - the clients get it
                for one in batch:
                    if not one.answer.done():
                        one.answer.set_exception(error)
            else:
                self._deliver(batch, answers, queue_seconds)
            self._expected = len(batch) + len(self._waiting)

    def _deliver(
        self, batch: Sequence[_Waiting], answers: Sequence[Answer], queue_seconds: float
    ) -> None:
        for one, answer in zip(batch, answers, strict=True):
            if answer.batch is not None:
                facts = replace(answer.batch, queue_seconds=queue_seconds)
                answer = replace(answer, batch=facts)
            if not one.answer.done():
                one.answer.set_result(answer)

    async def _next_batch(self) -> list[_Waiting]:
        """Return the next requests to compute together; wait until there is at least one."""
        while True:
            self._drop_abandoned()
            if not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            await self._await_others(time.perf_counter() + self._max_latency)
            batch = self._taken()
            if batch:
                return batch

    async def _await_others(self, end: float) -> None:
        """Wait for further requests of the next batch, until the time *end* at the latest.

        The wait ends earlier if the batch is full or no more requests are expected. The time is
        counted from the moment when the thread is free. If it were counted from the first request,
        two halves of the clients would alternate, in batches half as large.
        """
        while len(self._waiting) < self._expected and not self._is_full():
            seconds = end - time.perf_counter()
            if seconds <= 0:
                return
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), seconds)
            except asyncio.TimeoutError:
                return

    def _is_full(self) -> bool:
        return sum(one.rows for one in self._waiting) >= self._max_rows

    def _taken(self) -> list[_Waiting]:
        """Remove and return the first requests of the queue that fit into a batch."""
        batch: list[_Waiting] = []
        rows = 0
        while self._waiting and rows + self._waiting[0].rows <= self._max_rows:
            one = self._waiting.popleft()
            if not one.answer.done():
                batch.append(one)
                rows += one.rows
        return batch
