"""Has missing families of kernels compiled at run time, and shows how far that is."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from delegraph.delegation.blob_cache import BlobCache
from delegraph.errors import DelegateError
from delegraph_numba_cpu.cache import key_of
from delegraph_numba_cpu.compiler import CompileError, compile_side_by_side
from delegraph_numba_cpu.cpu import physical_cores
from delegraph_numba_cpu.levels import CpuLevel

Progress = Callable[[int, int, str], None]
"""Called with how many families are done, of how many, and which was last; at first with 0."""


def build(
    families: Sequence[str], level: CpuLevel, cache: BlobCache, progress: Progress | None = None
) -> dict[str, bytes]:
    """Compile families, put them into a cache and return their kernels, packed.

    What another process compiles at the same time is waited for.

    Args:
        families: which.
        level: the instructions to use.
        cache: that of the level.
        progress: is told what is done; None for a line on standard error if that is a terminal.

    Raises:
        DelegateError: one of them cannot be compiled; the message ends with the compiler's.
    """
    if progress is None:
        with _progress_line() as tell:
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
def _progress_line() -> Iterator[Progress]:
    """Yield what keeps a line on standard error up to date, and removes it at the end."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total, family: None
        return

    def tell(done: int, total: int, family: str) -> None:
        text = f"numba_cpu: compiling kernels for this processor, once: {done} of {total}"
        print(f"\r{text}", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
