"""Interpreters that are only looked at, and never run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_IS_DRY_RUN: ContextVar[bool] = ContextVar("delegraph_dry_run", default=False)


@contextmanager
def dry_run() -> Iterator[None]:
    """Prepare interpreters in this block for inspection only: placement and sizes, no invoke.

    Delegates then leave out what only an invoke needs, so such an interpreter cannot invoke.
    """
    token = _IS_DRY_RUN.set(True)
    try:
        yield
    finally:
        _IS_DRY_RUN.reset(token)


def is_dry_run() -> bool:
    """Return whether the present prepare is for inspection only.

    A delegate asks in its kernel's ``prepare``. It may then leave out what takes long, such as
    compiling, as long as it finds out all the same whether it can compute the nodes.
    """
    return _IS_DRY_RUN.get()
