"""A binary heap that orders equal elements like the heap of C++'s standard library.

The official kernels sort by ``std::partial_sort`` and ``std::priority_queue`` in places where the
order of equal elements affects the output. This order follows from the moves of elements in C++'s
heap, so these functions move elements exactly as libstdc++ does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
Order = Callable[[T, T], bool]
"""Function that returns whether its first argument must be below its second in the heap."""


def largest(values: Sequence[float], count: int) -> list[int]:
    """Return the positions of the *count* largest *values*, in the order of ``std::partial_sort``.

    Args:
        values: at least *count* numbers.
        count: at least 1.

    >>> largest([0.0, 0.0, 0.0, 0.0], 4)
    [1, 3, 0, 2]
    """

    def below(a: int, b: int) -> bool:
        return values[a] > values[b]

    heap = list(range(count))
    for parent in range((count - 2) // 2, -1, -1):
        sink(heap, parent, count, heap[parent], below)
    for candidate in range(count, len(values)):
        if values[candidate] > values[heap[0]]:
            sink(heap, 0, count, candidate, below)
    for end in range(count - 1, 0, -1):
        last = heap[end]
        heap[end] = heap[0]
        sink(heap, 0, end, last, below)
    return heap


def push(heap: list[T], item: T, below: Order[T]) -> None:
    """Add *item* to *heap*; elements move as in ``std::push_heap``.

    *below* is a function of two elements that tells whether the first one belongs below the second.
    """
    heap.append(item)
    _rise(heap, len(heap) - 1, 0, item, below)


def pop(heap: list[T], below: Order[T]) -> T:
    """Remove and return the top of a non-empty *heap*; elements move as in ``std::pop_heap``.

    *below* is a function of two elements that tells whether the first one belongs below the second.
    """
    top, last = heap[0], heap.pop()
    if heap:
        sink(heap, 0, len(heap), last, below)
    return top


def sink(heap: list[T], hole: int, size: int, item: T, below: Order[T]) -> None:
    """Put *item* into the heap in place of the element at index *hole*.

    As in C++, the higher child moves into the hole until the hole has no child. Then *item* rises
    from there. *size* is the number of elements, the hole included. *below* is a function of two
    elements that tells whether the first one belongs below the second.
    """
    top, child = hole, 2 * hole + 2
    while child < size:
        if below(heap[child], heap[child - 1]):
            child -= 1
        heap[hole] = heap[child]
        hole, child = child, 2 * child + 2
    if child == size:  # a last child without a sibling
        heap[hole] = heap[child - 1]
        hole = child - 1
    _rise(heap, hole, top, item, below)


def _rise(heap: list[T], hole: int, top: int, item: T, below: Order[T]) -> None:
    while hole > top and below(heap[(hole - 1) // 2], item):
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = item
