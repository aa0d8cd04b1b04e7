"""Runs a kept program for a host that has not read the model: Delegraph's ``kept_start``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from delegraph.delegation import BlobCache, limited_num_threads
from delegraph.errors import DelegateError
from delegraph_numba_cpu.kept import keys
from delegraph_numba_cpu.kept.program_file import UnfitFile
from delegraph_numba_cpu.kept.reading import Host, read
from delegraph_numba_cpu.library.cpu import level_named, physical_cores
from delegraph_numba_cpu.library.kernel_library import library
from delegraph_numba_cpu.program.pool import POOL
from delegraph_numba_cpu.program.program import is_guarded
from delegraph_numba_cpu.program.working_memory import WorkingMemory

if TYPE_CHECKING:
    from delegraph import Tensor
    from delegraph.operators import MemoryLimit


CPU, KEPT_PROGRAMS = "auto", True
"""Values of the delegate's options; a default delegate always has the defaults."""


class _NotProfiled:
    """Delegate context of a kept start, which is never profiled."""

    is_profiling = False


def made_for(num_threads: int | None) -> str | None:
    """Return a text of everything outside of the model that kept programs depend on.

    The result is None if no program may be kept.

    Args:
        num_threads: number of threads that the user allows; None if not set.
    """
    version = keys.version()
    if version is None or is_guarded() or not keys.is_wanted(KEPT_PROGRAMS):
        return None
    try:
        level = level_named(CPU)
    except DelegateError:  # the user sees this error when the delegate is applied
        return None
    return f"{version} {level.name} {_workers(num_threads)}"


def _workers(num_threads: int | None) -> int:
    return limited_num_threads(num_threads or 0) or physical_cores()


def key_of(kernel: Any, border: Collection[int]) -> str | None:
    """Return the key of the kept program that a delegate kernel runs, as hexadecimal digits.

    The result is None unless there is a program that is stored in the user's cache only.
    It is also None if the program needs other tensors of the host than those of *border*.

    Args:
        kernel: the kernel of a partition, prepared.
        border: indices of the model's inputs and outputs.
    """
    from delegraph_numba_cpu.kept.writing import host_tensors  # lazy: not where programs are read

    if kernel.program is None or not kernel.kept.is_in_cache:
        return None
    return kernel.kept.key.hex() if host_tensors(kernel.program).issubset(border) else None


def run_of(
    stored: Any,
    tensors: Mapping[int, Tensor],
    num_threads: int | None,
    limit: MemoryLimit,
    cancellation: Any,
) -> Callable[[], None] | None:
    """Return a function that runs a kept program; None if the program cannot be used.

    Args:
        stored: the host's ``Stored``: the program's key, inputs and outputs, and number of nodes.
        tensors: the inputs and outputs, by index.
        num_threads: number of threads that the user allows; None if not set.
        limit: limit of the program's memory.
        cancellation: stop request of the host's calls.
    """
    content = BlobCache(keys.NAMESPACE, keys.version() or "0").map(f"program {stored.program}")
    if content is None:
        return None
    kernels, workers = library(level_named(CPU)), _workers(num_threads)
    host = Host(
        tensors,
        range(stored.nodes),
        (*stored.inputs, *stored.outputs),
        stored.outputs,
        workers,
        kernels,
        WorkingMemory(limit),
    )
    try:
        program = read(content, bytes.fromhex(stored.program), host)
    except UnfitFile:
        return None
    POOL.warn_of(workers)
    program.heed(cancellation.word)

    def failed() -> None:
        cancellation.raise_if_requested()
        raise DelegateError("the run was stopped, for an unknown reason", phase="eval")

    def run() -> None:
        if not program.run(POOL, kernels):
            failed()

    return program.known_run(POOL, kernels, _NotProfiled(), run, failed)
