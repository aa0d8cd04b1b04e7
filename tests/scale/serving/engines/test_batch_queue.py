"""Requests that come while a batch is computed share the next one; abandoned ones leave."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import pytest

from delegraph.scale.rows import Columns
from delegraph.scale.serving.batches import Answer
from delegraph.scale.serving.engines.batch_queue import BatchQueue
from delegraph.scale.serving.engines.daemon_thread import DaemonThread
from delegraph.scale.serving.refusals import Kind, Refusal


class Model:
    """Doubles a value when its gate is open.

    Attributes:
        batches: the values of each computed batch.
    """

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.batches: list[list[int]] = []

    def __call__(self, requests: Sequence[Columns]) -> list[Answer]:
        self.gate.wait(10)
        values = [int(request["x"][0]) for request in requests]
        self.batches.append(values)
        if 66 in values:
            raise ValueError("66 is too much")
        return [Answer({"y": 2 * request["x"]}) for request in requests]


def row(value: int, rows: int = 1) -> Columns:
    return {"x": np.full(rows, value)}


def run(
    test: Callable[[BatchQueue, Model], Awaitable[None]],
    max_rows: int = 4,
    max_latency: float = 0.0,
    max_queued: int = 8,
) -> Model:
    model = Model()

    async def main() -> None:
        thread = DaemonThread("test")
        queue = BatchQueue(thread, model, max_rows, max_latency, max_queued)
        queue.start()
        await test(queue, model)
        await queue.stop()
        thread.end()

    asyncio.run(asyncio.wait_for(main(), 20))
    return model


async def first(queue: BatchQueue, model: Model) -> asyncio.Task[Answer]:
    """Return a request that is being computed until the gate is opened."""
    model.gate.clear()
    task = asyncio.create_task(queue.answer(row(0)))
    await asyncio.sleep(0.05)
    return task


def test_what_comes_meanwhile_is_computed_together() -> None:
    async def test(queue: BatchQueue, model: Model) -> None:
        tasks = [await first(queue, model)]
        tasks += [asyncio.create_task(queue.answer(row(value))) for value in range(1, 7)]
        await asyncio.sleep(0)
        model.gate.set()
        answers = await asyncio.gather(*tasks)
        assert [int(answer.rows["y"][0]) for answer in answers] == [0, 2, 4, 6, 8, 10, 12]

    assert run(test).batches == [[0], [1, 2, 3, 4], [5, 6]]


def test_rows_fill_a_batch() -> None:
    async def test(queue: BatchQueue, model: Model) -> None:
        task = await first(queue, model)
        others = [asyncio.create_task(queue.answer(row(n, rows=n))) for n in (3, 2, 1, 4)]
        await asyncio.sleep(0)
        model.gate.set()
        await asyncio.gather(task, *others)

    assert run(test).batches == [[0], [3], [2, 1], [4]]


def test_a_request_waits_for_as_many_as_came_last() -> None:
    async def test(queue: BatchQueue, model: Model) -> None:
        await asyncio.gather(queue.answer(row(1)), queue.answer(row(2)))  # as if two clients
        task = asyncio.create_task(queue.answer(row(3)))
        await asyncio.sleep(0.05)
        assert not task.done()
        await asyncio.gather(task, queue.answer(row(4)))

    assert run(test, max_latency=10.0).batches in ([[1, 2], [3, 4]], [[1], [2], [3, 4]])


def test_requests_of_a_long_batch_wait_for_the_clients_of_that_batch() -> None:
    async def again(task: asyncio.Task[Answer], queue: BatchQueue) -> None:
        await task
        await queue.answer(row(3))

    async def test(queue: BatchQueue, model: Model) -> None:
        client = asyncio.create_task(again(await first(queue, model), queue))
        others = [asyncio.create_task(queue.answer(row(value))) for value in (1, 2)]
        await asyncio.sleep(0.35)  # longer than the latency
        model.gate.set()
        await asyncio.gather(client, *others)

    assert run(test, max_latency=0.3).batches == [[0], [1, 2, 3]]


def test_one_client_does_not_wait() -> None:
    async def test(queue: BatchQueue, model: Model) -> None:
        for value in range(3):
            await queue.answer(row(value))

    assert run(test, max_latency=1000.0).batches == [[0], [1], [2]]


def test_a_full_queue_refuses_and_abandoned_requests_leave_it() -> None:
    async def test(queue: BatchQueue, model: Model) -> None:
        task = await first(queue, model)
        waiting = [asyncio.create_task(queue.answer(row(value))) for value in (1, 2)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="too many requests: 2 wait already") as caught:
            await queue.answer(row(3))
        assert caught.value.kind is Kind.UNAVAILABLE
        waiting[0].cancel()
        await asyncio.sleep(0)
        later = asyncio.create_task(queue.answer(row(4)))
        await asyncio.sleep(0)
        model.gate.set()
        await asyncio.gather(task, waiting[1], later)

    assert run(test, max_queued=2).batches == [[0], [2, 4]]


def test_a_batch_that_fails_ends_no_later_one() -> None:
    async def test(queue: BatchQueue, model: Model) -> None:
        with pytest.raises(ValueError, match="66"):
            await queue.answer(row(66))
        assert (await queue.answer(row(2))).rows["y"][0] == 4

    assert run(test).batches == [[66], [2]]


def test_what_waits_at_the_end_is_refused() -> None:
    async def test(queue: BatchQueue, model: Model) -> None:
        task = await first(queue, model)
        waiting = asyncio.create_task(queue.answer(row(1)))
        await asyncio.sleep(0)
        await queue.stop()
        with pytest.raises(Refusal, match="being unloaded"):
            await waiting
        task.cancel()
        model.gate.set()

    run(test)
