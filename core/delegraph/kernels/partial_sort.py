"""The order in which C++'s ``std::partial_sort`` leaves equal elements.

The official kernels use it in places where a tie shows in the output. Its order of equal elements
is no rule but a consequence of the heap it works with, so the heap is worked here the same way.
"""

from __future__ import annotations

from collections.abc import Sequence


def largest(values: Sequence[float], count: int) -> list[int]:
    """Return the positions of the *count* largest of *values*, the largest first.

    Equal values come as libstdc++ has them, which is not the order of their positions.

    Args:
        values: at least *count* numbers.
        count: at least 1.

    >>> largest([1.0, 3.0, 2.0, 3.0], 2)
    [1, 3]
    """
    heap = list(range(count))
    for parent in range((count - 2) // 2, -1, -1):
        _sink(heap, parent, count, heap[parent], values)
    for candidate in range(count, len(values)):
        if values[candidate] > values[heap[0]]:
            _sink(heap, 0, count, candidate, values)
    for end in range(count - 1, 0, -1):
        last = heap[end]
        heap[end] = heap[0]
        _sink(heap, 0, end, last, values)
    return heap


def _sink(heap: list[int], hole: int, size: int, item: int, values: Sequence[float]) -> None:
    """Put *item* into the heap below *hole*: down along the smaller children, then up again."""
    top, child = hole, 2 * hole + 2
    while child < size:
        if values[heap[child]] > values[heap[child - 1]]:
            child -= 1
        heap[hole] = heap[child]
        hole, child = child, 2 * child + 2
    if child == size:  # a last child without a sibling
        heap[hole] = heap[child - 1]
        hole = child - 1
    while hole > top and values[heap[(hole - 1) // 2]] > values[item]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = item
