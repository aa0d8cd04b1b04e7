"""Replaces a greedy arena plan that takes clearly more memory than the lower bound."""

from __future__ import annotations

from collections.abc import Sequence

from delegraph.memory.arena import TOLERATED, Allocation
from delegraph.memory.bounds import lower_bound
from delegraph.memory.records import TensorUsageRecord

_EFFORT = 20_000  # number of placements, some hundredths of a second


def tightened(blocks: Sequence[Allocation], alignment: int) -> list[Allocation] | None:
    """Return the blocks with offsets of a smaller plan; None if not needed or not found.

    A plan that exceeds the bytes in use at the busiest node by at most one percent needs no change.
    For other plans there is a short search.

    Args:
        blocks: all blocks of a plan, except empty blocks.
        alignment: number of bytes of which every offset is a multiple.

    >>> blocks = [Allocation(0, 0, 1, 0, 64), Allocation(1, 1, 2, 128, 128),
    ...           Allocation(2, 2, 3, 0, 64)]
    >>> [block.offset for block in tightened(blocks, alignment=64)]
    [128, 0, 128]
    """
    horizon = max((block.first_node for block in blocks), default=0)  # then nothing is added
    records = [
        TensorUsageRecord(block.size, block.first_node, min(block.last_node, horizon))
        for block in blocks
    ]
    total_size = max((block.offset + block.size for block in blocks), default=0)
    if total_size <= TOLERATED * lower_bound(records, alignment):
        return None
    from delegraph.memory.best_planner import plan_best  # lazy import: few plans are worth a search

    plan = plan_best(records, alignment, effort=_EFFORT)
    if plan.total_size >= total_size:
        return None
    return [
        block._replace(offset=offset) for block, offset in zip(blocks, plan.offsets, strict=True)
    ]
