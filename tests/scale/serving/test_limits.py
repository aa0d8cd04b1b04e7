"""The bytes of large requests are bounded, and requests get them in turn."""

from __future__ import annotations

import asyncio

import pytest

from delegraph.scale.serving.limits import ByteBudget
from delegraph.scale.serving.refusals import Refusal


def test_requests_wait_in_turn_until_there_is_room() -> None:
    async def run() -> list[str]:
        budget, done = ByteBudget(10, 10.0), []
        release = {name: asyncio.Event() for name in "abcd"}

        async def hold(name: str, size: int) -> None:
            async with budget.held(size):
                done.append(name)
                await release[name].wait()

        tasks = {
            n: asyncio.create_task(hold(n, size))
            for n, size in zip("abcd", (6, 99, 5, 4), strict=True)
        }
        await asyncio.sleep(0)
        assert done == ["a"]  # d would fit, and waits for its turn
        tasks["b"].cancel()
        release["a"].set()
        await tasks["a"]
        await asyncio.sleep(0.01)
        for event in release.values():
            event.set()
        await asyncio.gather(tasks["c"], tasks["d"])
        async with budget.held(99):  # alone, what is larger than all fits
            done.append("all")
        return done

    assert asyncio.run(run()) == ["a", "c", "d", "all"]


def test_a_wait_for_bytes_ends() -> None:
    async def run() -> None:
        budget = ByteBudget(10, 0.01)
        async with budget.held(6):
            with pytest.raises(Refusal, match="too many large requests"):
                async with budget.held(6):
                    pass
        async with budget.held(10):
            pass

    asyncio.run(run())
