"""Sets the number of BLAS threads while a subgraph that multiplies matrices runs."""

from __future__ import annotations

import ctypes
import os
import sys
from _thread import get_ident  # as in threading, whose import is slow
from functools import cache
from typing import Any
from weakref import ReferenceType, ref

import numpy as np

from delegraph.locks import Lock


@cache
def _libraries() -> tuple[Any, ...]:
    """Return the BLAS libraries of this process; the search takes milliseconds."""
    own = None if {"scipy", "threadpoolctl"} & sys.modules.keys() else openblas_of_numpy()
    if own is not None:
        return (own,)
    from threadpoolctl import ThreadpoolController  # lazy import: only models that multiply need it

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


class OpenBlas:
    """The OpenBLAS in NumPy's wheels, with the members of a library of ``threadpoolctl``.

    Importing ``threadpoolctl`` takes longer than running a small model.

    Args:
        library: the library, which NumPy has opened.
        prefix: prefix of its functions' names.
        suffix: suffix of its functions' names.

    Raises:
        AttributeError: the library lacks a function.
    """

    def __init__(self, library: Any, prefix: str, suffix: str) -> None:
        self.get_num_threads = getattr(library, f"{prefix}openblas_get_num_threads{suffix}")
        self.set_num_threads = getattr(library, f"{prefix}openblas_set_num_threads{suffix}")
        parallel: int = getattr(library, f"{prefix}openblas_get_parallel{suffix}")()
        self.threading_layer = {1: "pthreads", 2: "openmp"}.get(parallel, "disabled")


def openblas_of_numpy() -> OpenBlas | None:
    """Return the OpenBLAS in NumPy's Linux wheel; None if NumPy uses another BLAS."""
    if sys.platform != "linux":
        return None
    folder = os.path.join(os.path.dirname(np.__path__[0]), "numpy.libs")
    try:
        (name,) = (each for each in os.listdir(folder) if each.startswith("libscipy_openblas"))
        mode = os.RTLD_NOW | os.RTLD_NOLOAD
        library = ctypes.CDLL(os.path.join(folder, name), mode)
        return OpenBlas(library, "scipy_", "64_" if "openblas64_" in name else "")
    except (OSError, ValueError, AttributeError):
        return None


lock = Lock()
"""Lock that is held while threads of the libraries are counted or changed."""
_open: list[ReferenceType[BlasThreads]] = []
"""The open contexts, in the order in which they were entered.

The references are weak, because an interrupt may prevent that a context is left.
"""
_outside: list[int] = []
"""Number of threads of each library before the first open context was entered."""


class BlasThreads:
    """Context in which NumPy's BLAS uses *count* threads; leaving it restores the old number.

    Most libraries have one number of threads for the whole process. If several threads have such a
    context open, the last one entered decides, and the last one left restores the first number.

    ``threadpoolctl.threadpool_limits`` does the same in about 19 us, the run time of a small model.
    This class takes 2 us if nothing needs to change.
    """

    __slots__ = ("__weakref__", "_before", "_count", "_thread")

    def __init__(self, count: int) -> None:
        self._count = count
        self._thread = 0
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._thread = get_ident()
        with lock:
            if _open and not _others(self):  # all open contexts were lost
                _restore(_outside, _outside)
                _open.clear()
            self._before = [library.get_num_threads() for library in _libraries()]
            if not _open:
                _outside[:] = self._before
            _open.append(ref(self))
            for library in _libraries():
                _set(library, self._count)

    def __exit__(self, *error: object) -> None:
        with lock:
            others = _others(self) if len(_open) > 1 else []
            _restore(self._before, [others[-1]._count] * len(_outside) if others else _outside)
            _open[:] = map(ref, others)  # last: after an interrupt, this context counts as lost


def _others(context: BlasThreads | None = None) -> list[BlasThreads]:
    """Return all open contexts that still exist, except *context*."""
    found = [each() for each in _open]
    return [each for each in found if each is not None and each is not context]


def _restore(own: list[int], shared: list[int]) -> None:
    """Restore each library's number of threads: that of this thread, or that of all threads.

    *own* has the numbers of this thread, which OpenMP libraries keep for each thread. *shared* has
    the numbers of the other libraries. Both lists have an item for each library.
    """
    for library, mine, common in zip(_libraries(), own, shared, strict=True):
        _set(library, mine if library.threading_layer == "openmp" else common)


def _after_fork() -> None:
    """Forget the parent's threads in a forked child, which does not have them."""
    global lock
    lock = Lock()
    own = [ref(each) for each in _others() if each._thread == get_ident()]
    if _open and not own:
        _restore(_outside, _outside)
    _open[:] = own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _set(library: Any, count: int) -> None:
    """Set a library's number of threads to *count*, for every thread that calls it.

    From version 3.8 on, threadpoolctl ignores other threads until the first thread that set a
    number restores it.
    """
    if library.get_num_threads() != count:
        library.set_num_threads(count)
        let_go = getattr(library, "clear_controlling_thread", None)
        if let_go is not None:
            let_go()
