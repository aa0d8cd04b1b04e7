"""A memory plan of the greedy planner as text, with one line per step.

Source:
    GreedyMemoryPlanner::PrintMemoryPlan, tflite-micro/micro/memory_planner/.
"""

from __future__ import annotations

from collections.abc import Iterator

from delegraph.micro.planners import GreedyMemoryPlanner

_WIDTH = 80
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def memory_plan_text(planner: GreedyMemoryPlanner) -> str:
    """Return the buffers of a plan as text, with a map of 80 columns for each step.

    Each buffer has a letter that marks its bytes; ``.`` marks free bytes, and ``!`` bytes of two
    buffers. Buffers that are used at a single step have the letter ``*``.

    >>> planner = GreedyMemoryPlanner()
    >>> planner.add_buffer(60, 0, 1)
    >>> planner.add_buffer(20, 1, 1)
    >>> print(memory_plan_text(planner))  # doctest: +NORMALIZE_WHITESPACE
    0 (id=0): size=60, offset=0, first_used=0 last_used=1
    * (id=1): size=20, offset=60, first_used=1 last_used=1
       0: 000000000000000000000000000000000000000000000000000000000000.................... (1k)
       1: 000000000000000000000000000000000000000000000000000000000000******************** (1k)
    """
    places = list(zip(planner.buffers, planner.offsets, strict=True))
    lines = [
        f"{_letter(planner, i)} (id={i}): size={b.size}, offset={offset}, "
        f"first_used={b.first_use} last_used={b.last_use}"
        for i, (b, offset) in enumerate(places)
    ]
    return "\n".join([*lines, *_map(planner)])


def _letter(planner: GreedyMemoryPlanner, i: int) -> str:
    buffer = planner.buffers[i]
    return "*" if buffer.first_use == buffer.last_use else _DIGITS[i % len(_DIGITS)]


def _map(planner: GreedyMemoryPlanner) -> Iterator[str]:
    scale = max(_WIDTH, planner.maximum_memory_size)
    steps = max((buffer.last_use for buffer in planner.buffers), default=-1) + 1
    for step in range(steps):
        line, used = ["."] * _WIDTH, 0
        for i, (buffer, offset) in enumerate(zip(planner.buffers, planner.offsets, strict=True)):
            if not buffer.first_use <= step <= buffer.last_use:
                continue
            used += buffer.size
            for column in range(offset * _WIDTH // scale, (offset + buffer.size) * _WIDTH // scale):
                line[column] = _letter(planner, i) if line[column] == "." else "!"
        yield f"{step:4d}: {''.join(line)} ({-(-used // 1024)}k)"
