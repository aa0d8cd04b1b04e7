"""BLAS threads follow ``num_threads`` while a subgraph that multiplies matrices runs."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> tuple[Any, ...]:
    """Return the BLAS libraries of this process; finding them takes milliseconds."""
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


class BlasThreads:
    """A context in which NumPy's BLAS uses *count* threads; restored at its end.

    ``threadpoolctl.threadpool_limits`` does the same in about 19 us, as long as a small model runs;
    this takes 1 us where nothing needs to change.
    """

    __slots__ = ("_before", "_count")

    def __init__(self, count: int) -> None:
        self._count = count
        self._before: list[int] = []

    def __enter__(self) -> None:
        for library in _libraries():
            threads = library.get_num_threads()
            self._before.append(threads)
            if threads != self._count:
                library.set_num_threads(self._count)

    def __exit__(self, *error: object) -> None:
        for library, threads in zip(_libraries(), self._before, strict=True):
            if threads != self._count:
                library.set_num_threads(threads)
