"""BLAS threads follow ``num_threads`` while a subgraph that multiplies matrices runs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finding the loaded libraries takes milliseconds


def blas_threads(count: int) -> AbstractContextManager[object]:
    """Return a context in which NumPy's BLAS uses *count* threads; restored at its end."""
    limits: AbstractContextManager[object] = _controller().limit(limits=count, user_api="blas")
    return limits
