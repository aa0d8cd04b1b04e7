"""Pauses Python's cycle collector while very many objects are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 2000
"""Number of long-lived objects from which on they are moved to the oldest generation unscanned."""


@contextmanager
def collector_paused(lasting: int = 0) -> Iterator[None]:
    """Pause the cycle collector during a block that creates many long-lived objects.

    Without the pause, the collector would scan the objects each time their number grows by a
    quarter, and find no garbage. After the block it would scan all objects twice more before they
    are in the oldest generation. So they are moved there at once. The youngest objects made before
    the block are scanned first, since garbage among them would otherwise remain until a full
    collection. Objects that survived a scan are not scanned again: this takes a millisecond after
    NumPy's import, and rarely finds garbage.

    Args:
        lasting: approximate number of long-lived objects that the block creates.
    """
    enabled = gc.isenabled()
    moves = enabled and lasting >= MANY and not gc.get_freeze_count()
    if moves:
        gc.collect(0)
    gc.disable()
    try:
        yield
    finally:
        if moves:
            gc.freeze()  # freezing and unfreezing joins lists, however long they are
            gc.unfreeze()
        if enabled:
            gc.enable()
