"""Pauses Python's cycle collector while very many objects are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 2000
"""Lasting objects from which on they go to the oldest generation unseen."""


@contextmanager
def collector_paused(lasting: int = 0) -> Iterator[None]:
    """Keep the cycle collector off while tens of thousands of lasting objects are made.

    It would rescan them each time their number has grown by a quarter, and find nothing. Where it
    goes on afterwards, it would scan all of them twice more on their way to the oldest generation;
    many go there at once. Objects that were young before stay out of that, since garbage among
    them would wait for a full collection.

    Args:
        lasting: about how many objects are made.
    """
    enabled = gc.isenabled()
    moves = enabled and lasting >= MANY and not gc.get_freeze_count()
    if moves:
        gc.collect(1)
    gc.disable()
    try:
        yield
    finally:
        if moves:
            gc.freeze()  # freezing and unfreezing joins lists, however long they are
            gc.unfreeze()
        if enabled:
            gc.enable()
