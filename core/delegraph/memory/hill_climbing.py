"""Improves a plan by trying other orders in which to place the tensors."""

from __future__ import annotations

import random
from collections.abc import Sequence

from delegraph.memory.packing import Packing, first_fit


def climb(packing: Packing, offsets: Sequence[int], goal: int, rounds: int) -> list[int]:
    """Improve a plan by hill climbing; return offsets of a plan that is not larger.

    An order defines a plan: each tensor is placed in turn at its lowest free offset. Each round
    moves one tensor forward in the order: a tensor at the end of the buffer or below such a tensor,
    since only these can make the plan smaller. A plan that is not larger than the previous plan is
    kept. Random choices are seeded: the result depends only on the arguments.

    Args:
        packing: sizes and lifetimes of the tensors.
        offsets: the initial plan, in units of the alignment; the result has the same units.
        goal: number of bytes at which to stop.
        rounds: number of orders to try.
    """
    rng = random.Random(0)
    units, neighbours = packing.units.tolist(), packing.neighbours()
    order = sorted(range(len(packing)), key=lambda i: (offsets[i], i))
    best = current = first_fit(order, units, neighbours)
    best_total = total = packing.plan(current).total_size
    for _ in range(rounds):
        if best_total <= goal:
            break
        critical = _critical(packing, current, units, neighbours)
        candidate = _moved_ahead(order, rng.choice(critical), neighbours, rng)
        placed = first_fit(candidate, units, neighbours)
        new_total = packing.plan(placed).total_size
        if new_total <= total:
            order, current, total = candidate, placed, new_total
        if new_total < best_total:
            best, best_total = placed, new_total
    return best


def _critical(
    packing: Packing, offsets: Sequence[int], units: Sequence[int], neighbours: list[list[int]]
) -> list[int]:
    """Return the tensors that determine the size of the plan.

    These are the tensors at the end of the buffer, the tensors directly below them, and so on down
    to the start.

    Args:
        packing: sizes and lifetimes of the tensors.
        offsets: the plan, in units.
        units: sizes of the tensors, in units.
        neighbours: for each tensor, the tensors in use at the same time.
    """
    sizes, unit = packing.sizes.tolist(), packing.alignment
    ends = [offset * unit + size for offset, size in zip(offsets, sizes, strict=True)]
    top = max(ends)
    critical = [i for i, end in enumerate(ends) if end == top]
    seen = set(critical)
    for record in critical:  # the list grows in the loop
        for other in neighbours[record]:
            if other not in seen and offsets[other] + units[other] == offsets[record]:
                seen.add(other)
                critical.append(other)
    return critical


def _moved_ahead(
    order: Sequence[int], record: int, neighbours: list[list[int]], rng: random.Random
) -> list[int]:
    """Return *order* with the tensor *record* moved forward.

    Its new position is directly before a random tensor that preceded it and is in use at the same
    time. If there is no such tensor, the new position is random.

    Args:
        order: the tensors in the order in which they are placed.
        record: the tensor to move.
        neighbours: for each tensor, the tensors in use at the same time.
        rng: generator that chooses the position.
    """
    place = {other: position for position, other in enumerate(order)}
    ahead = [other for other in neighbours[record] if place[other] < place[record]]
    target = place[rng.choice(ahead)] if ahead else rng.randrange(len(order))
    moved = [other for other in order if other != record]
    moved.insert(target, record)
    return moved
