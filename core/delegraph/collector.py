"""Pauses Python's cycle collector while very many objects are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 2000
"""Lasting objects from which on they go to the oldest generation unseen."""


@contextmanager
def collector_paused(lasting: int = 0) -> Iterator[None]:
    """Turn the cycle collector off while tens of thousands of lasting objects are made.

    Otherwise the collector would scan the objects each time their number has grown by a quarter,
    and find no garbage. After the block it would scan all of them twice more on their way to the
    oldest generation, so many objects are moved there at once. Objects made before the block are
    scanned first, since garbage among them would then wait for a full collection.

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
