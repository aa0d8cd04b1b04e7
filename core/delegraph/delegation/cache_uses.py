"""Log of the cache files that a process and its children read and write, while it is wanted.

Another process may fill the same cache meanwhile, so a list of its files does not tell.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from delegraph.delegation.cache_files import USES_VARIABLE
from delegraph.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CacheUses:
    """Paths of cache files that were read and written; complete when the block has ended."""

    read: set[str]
    written: set[str]


@contextlib.contextmanager
def logged_uses() -> Iterator[CacheUses]:
    """Context that logs the cache files which this process and its children use in the block.

    Raises:
        OSError: no temporary file can be written.
    """
    import tempfile  # lazy import: few processes log

    uses = CacheUses(set(), set())
    outer = os.environ.get(USES_VARIABLE)
    with tempfile.TemporaryDirectory(prefix="delegraph-") as folder:
        log = os.environ[USES_VARIABLE] = os.path.join(folder, "uses")
        try:
            yield uses
        finally:
            os.environ.pop(USES_VARIABLE)
            if outer is not None:
                os.environ[USES_VARIABLE] = outer
            _add(uses, log)


def _add(uses: CacheUses, log: str) -> None:
    """Add the lines of a log to *uses*."""
    with contextlib.suppress(FileNotFoundError), open(log, "rb") as file:
        for line in file.read().decode("utf-8", "surrogateescape").splitlines():
            verb, _, path = line.partition(" ")
            (uses.written if verb == "written" else uses.read).add(path)
