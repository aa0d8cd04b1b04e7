"""Fills the cache with the files that delegates store for models, ahead of their use."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from delegraph.delegation import blob_cache
from delegraph.delegation.cache_entries import cache_entries
from delegraph.delegation.cache_files import CacheFolder
from delegraph.delegation.cache_uses import logged_uses
from delegraph.delegation.configuration import cache_folder
from delegraph.delegation.placement import Placement
from delegraph.json_records import JsonRecord
from delegraph.tools.setup import Setup

KEEPS_NOTHING = "keeps nothing"
"""State of a model whose delegates write no cache files and use none."""


@dataclass(frozen=True, slots=True)
class WarmedModel(JsonRecord):
    """Cache files that were written or used while one model was prepared.

    Files of other processes that fill the same cache do not count.

    Attributes:
        model: path of the model.
        new_files: files that were written for it.
        new_bytes: size of the new files in bytes.
        used_files: existing files that were used.
        seconds: duration of preparing the model, in seconds.
        error: text that says why the model was not prepared, or its files were not stored; empty
            if they were.
        placement: summary of the model's placement in one line; empty if it was not prepared.
        delegates_without_nodes: names of the requested delegates that take no node.
    """

    json_properties: ClassVar = {"state": "state"}

    model: str
    new_files: int = 0
    new_bytes: int = 0
    used_files: int = 0
    seconds: float = 0.0
    error: str = ""
    placement: str = ""
    delegates_without_nodes: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """Effect on the cache: ``filled``, ``warm already``, ``keeps nothing`` or ``failed``."""
        if self.error:
            return "failed"
        if self.new_files:
            return "filled"
        return "warm already" if self.used_files else KEEPS_NOTHING


def allocate(setup: Setup) -> Placement:
    """Create and allocate an interpreter of the set-up *setup*; return its placement."""
    with setup.interpreter() as interpreter:
        interpreter.allocate_tensors()
        return interpreter.placement


def require_writable_cache() -> None:
    """Check that a file can be written to the cache folder, which is created if missing.

    Raises:
        OSError: it cannot.
    """
    place = CacheFolder(cache_folder()).made("")
    with tempfile.TemporaryFile(dir=place):
        pass


def warm(setup: Setup, prepare: Callable[[Setup], Placement] = allocate) -> WarmedModel:
    """Prepare a model, so that delegates store compiled code and decisions in the cache.

    Args:
        setup: the model with its delegates and number of threads, which decide what is stored.
        prepare: function that prepares the model as later processes will use it, and returns its
            placement.

    Raises:
        DelegraphError: the model cannot be loaded or allocated.
        OSError: the cache cannot be read.
    """
    warned = set(blob_cache.warned_of)
    start = time.monotonic()
    with logged_uses() as uses:
        placement = prepare(setup)
    seconds = time.monotonic() - start
    entries = {os.fspath(entry.path): entry for entry in cache_entries()}
    new = [entries[path] for path in uses.written if path in entries]
    used = [path for path in uses.read - uses.written if path in entries]
    size = sum(entry.size for entry in new)
    error = "; ".join(sorted(blob_cache.warned_of - warned))
    took = round(seconds, 3)
    taking = {partition.delegate for partition in placement.partitions}
    idle = tuple(name for name in placement.requested_delegates if name not in taking)
    return WarmedModel(setup.model, len(new), size, len(used), took, error, str(placement), idle)
