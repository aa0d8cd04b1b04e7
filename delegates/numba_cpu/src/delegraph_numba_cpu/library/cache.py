"""Cache of compiled kernels: one entry for each family and level.

The key of an entry identifies the sources of the family. Its version identifies the compilers and
the type of processor.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import llvmlite
import llvmlite.binding as llvm

from delegraph.delegation import BlobCache
from delegraph_numba_cpu.codegen.cpu_levels import CpuLevel
from delegraph_numba_cpu.library.families import source_digest


class OpensCache(Protocol):
    """Interface of the function that opens a cache on disk: ``DelegateContext.cache``."""

    def __call__(self, namespace: str, version: str) -> BlobCache:
        """Return the cache for *namespace*, without entries of other versions.

        Args:
            namespace: name of the kind of entries, such as the kernels of a level.
            version: text that changes when entries become useless.
        """


def kernel_cache(level: CpuLevel, open_cache: OpensCache = BlobCache) -> BlobCache:
    """Return the cache on disk for kernels compiled for one instruction set of the processor.

    It holds only kernels made by the installed compilers for this kind of processor.

    Args:
        level: the instruction set, such as ``avx2``.
        open_cache: opens the interpreter's cache; by default the user's cache.
    """
    return open_cache("numba_cpu", f"{level.name}-{environment_digest()[:16]}")


def key_of(family: str) -> str:
    """Return the cache key of a family's compiled kernels: its name and a digest of its sources."""
    return f"{family} {source_digest(family)}"


@cache
def environment_digest() -> str:
    """Return a hash of the compilers' versions and the kind of processor."""
    parts = (numba_version(), llvmlite.__version__, llvm.get_process_triple())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def numba_version() -> str:
    """Text that identifies Numba's version, found without importing Numba or reading metadata."""
    found = find_spec("numba")
    if found is None or found.origin is None:
        return ""  # the version then fits no entry, and compiling reports what is missing
    try:
        return Path(found.origin).with_name("_version.py").read_text(encoding="utf-8")
    except OSError:
        from importlib.metadata import version

        return version("numba")
