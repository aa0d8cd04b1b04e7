"""Fills the cache with the files that delegates store for models, ahead of their use."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from delegraph.delegation.cache_entries import cache_entries
from delegraph.json_records import JsonRecord
from delegraph.tools.setup import Setup


@dataclass(frozen=True, slots=True)
class WarmedModel(JsonRecord):
    """Cache files that were written or used while one model was prepared.

    Attributes:
        model: path of the model.
        new_files: files that were written for it.
        new_bytes: size of the new files in bytes.
        used_files: existing files that were used.
        seconds: duration of preparing the model, in seconds.
    """

    model: str
    new_files: int
    new_bytes: int
    used_files: int
    seconds: float


def allocate(setup: Setup) -> None:
    """Create and allocate an interpreter of the set-up *setup*."""
    with setup.interpreter() as interpreter:
        interpreter.allocate_tensors()


def warm(setup: Setup, prepare: Callable[[Setup], None] = allocate) -> WarmedModel:
    """Prepare a model, so that delegates store compiled code and decisions in the cache.

    Args:
        setup: the model with its delegates and number of threads, which decide what is stored.
        prepare: function that prepares the model as later processes will use it.

    Raises:
        DelegraphError: the model cannot be loaded or allocated.
        OSError: the cache cannot be read.
    """
    before = {entry.path for entry in cache_entries()}
    started, start = time.time(), time.monotonic()
    prepare(setup)
    seconds = time.monotonic() - start
    entries = cache_entries()
    new = [entry for entry in entries if entry.path not in before]
    used = [e for e in entries if e.path in before and e.used >= started - _TICK]
    size = sum(entry.size for entry in new)
    return WarmedModel(setup.model, len(new), size, len(used), round(seconds, 3))


_TICK = 0.02
"""Largest delay of file times behind the clock, in seconds."""
