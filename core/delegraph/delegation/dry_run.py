"""Dry runs: interpreters that are prepared for inspection and never run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_IS_DRY_RUN: ContextVar[bool] = ContextVar("delegraph_dry_run", default=False)


@contextmanager
def dry_run() -> Iterator[None]:
    """Prepare interpreters in this block for inspection only: placement and sizes, no invoke.

    Delegates leave out work that only an invoke needs, so the interpreter cannot invoke.
    """
    token = _IS_DRY_RUN.set(True)
    try:
        yield
    finally:
        _IS_DRY_RUN.reset(token)


def is_dry_run() -> bool:
    """Whether the present ``prepare`` is for inspection only, so that no invoke will follow.

    A kernel's ``prepare`` calls this function. In a dry run it may leave out slow work such as
    compiling, but must still find out whether it can compute the nodes.
    """
    return _IS_DRY_RUN.get()
