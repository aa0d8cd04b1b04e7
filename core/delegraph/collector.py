"""Pauses Python's cycle collector while very many objects are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the cycle collector off while tens of thousands of lasting objects are made.

    It would rescan them each time their number has grown by a quarter, and find nothing. At the
    first few ends in a process, the objects count as old from then on: they are the modules of a
    start and the first model, and looking at them takes longer than running a small one.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            _make_old()
            gc.enable()


times_left = 4
"""How often objects are made old: later ones may be garbage of an earlier interpreter."""

_MANY = 1000
"""Young objects that are worth it."""


def _make_old() -> None:
    """Move all objects to the oldest generation, which takes no look at them."""
    global times_left
    if times_left and gc.get_count()[0] > _MANY and not gc.get_freeze_count():
        times_left -= 1
        gc.freeze()
        gc.unfreeze()
