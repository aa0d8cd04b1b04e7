"""Compiles missing families of kernels at run time, and shows the progress."""

from __future__ import annotations

import itertools
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from delegraph.delegation import BlobCache
from delegraph.errors import DelegateError
from delegraph_numba_cpu.codegen.cpu_levels import CpuLevel
from delegraph_numba_cpu.library.cache import key_of
from delegraph_numba_cpu.library.compile_processes import (
    CompileError,
    Progress,
    compile_side_by_side,
)
from delegraph_numba_cpu.library.cpu import physical_cores

logger = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds of compilation after which a message is logged."""

_WHAT = "numba_cpu: compiling kernels for processors of level {}, once"


def build(
    families: Sequence[str], level: CpuLevel, cache: BlobCache, progress: Progress | None = None
) -> dict[str, bytes]:
    """Compile families of kernels into the cache, and return the object code of each family.

    If another process compiles a family at the same time, this process waits for the result.

    Args:
        families: names of the families.
        level: instruction set of the processor that the kernels may use, such as ``avx2``.
        cache: cache of the level's compiled kernels.
        progress: function that gets the number of compiled families, the number of all, and the
            name of the last compiled one. None for lines on standard error if that is a terminal,
            else one log message if it takes long.

    Raises:
        DelegateError: a family cannot be compiled; the message ends with the compiler's.
    """
    if progress is None:
        with _shown_progress(_WHAT.format(level.name)) as tell:
            return build(families, level, cache, tell)
    count = itertools.count(1)
    progress(0, len(families), "")

    def make(family: str, compile_it: Callable[[], bytes]) -> bytes:
        return cache.read_or_make(key_of(family), compile_it)

    def done(family: str) -> None:
        progress(next(count), len(families), family)

    try:
        return compile_side_by_side(families, level, physical_cores(), make, done)
    except CompileError as error:
        raise DelegateError(str(error)) from error


@contextmanager
def _shown_progress(what: str) -> Iterator[Progress]:
    """Yield a function that reports progress: lines on a terminal, otherwise one log message.

    Whole lines are written, because a program's own status line on the terminal would overwrite
    anything shorter.
    """
    if sys.stderr is not None and sys.stderr.isatty():
        yield _Lines(what).tell
        return
    told = threading.Timer(PATIENCE, logger.warning, [f"{what}, which may take a minute"])
    told.daemon = True
    told.start()
    try:
        yield lambda done, total, family: None
    finally:
        told.cancel()


class _Lines:
    """Progress of compilation as lines on stderr: the first, the last, one every few seconds."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._last = -math.inf

    def tell(self, done: int, total: int, family: str) -> None:
        now = time.monotonic()
        if done == total or now - self._last >= PATIENCE:
            self._last = now
            print(f"{self._what}: {done} of {total} families", file=sys.stderr, flush=True)
