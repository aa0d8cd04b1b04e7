"""Keeps LiteRT from printing INFO and WARNING lines; errors are printed.

XNNPACK prints a line once per process. So a small model is prepared first, and the line is
discarded.

LiteRT's Python classes have no option for this. The C function that creates environments has an
option, which affects one copy of the library in the whole process. ``libLiteRt`` exports this
function. For the copy in the Python classes, the function is the first in a table to which each
Python environment refers.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from ctypes import POINTER, PYFUNCTYPE, Structure, byref, c_int, c_int64, c_void_p
from typing import Any

from delegraph.errors import UnsupportedRuntimeError
from delegraph.native.litert.accelerator_functions import exported_function
from delegraph.native.litert.environment import capsule_address
from delegraph.native.litert.guard import is_known
from delegraph.native.litert.installed_runtimes import compiled_model_runtime, interpreter_module

VERSIONS = {"2.3.0"}
"""Versions of ``ai_edge_litert`` whose function table is at the expected offset."""

_PROXY = 32
"""Offset of the pointer to the holder of the function table, in the capsule's C++ object."""

_ACCELERATORS, _LEAST_SEVERITY = 24, 25
"""Numbers of two options: which accelerators are registered, which messages are printed."""

_INTEGER, _ERROR = 2, 3


class _Option(Structure):
    _fields_ = (("tag", c_int), ("type", c_int64), ("value", c_int64))


_Options = _Option * 2
_CREATE = PYFUNCTYPE(c_int, c_int, POINTER(_Option), POINTER(c_void_p))

_is_quiet = False
_has_announced_xnnpack = False


def keep_xnnpack_quiet() -> None:
    """Let XNNPACK print its line now, with standard error discarded, so that it is not seen later.

    A second call does nothing. Without an official runtime, nothing happens.
    """
    global _has_announced_xnnpack
    if _has_announced_xnnpack:
        return
    _has_announced_xnnpack = True
    from delegraph.native.litert.self_check import check_model  # imports what a host may not need

    with contextlib.suppress(UnsupportedRuntimeError):
        module, content = interpreter_module(), check_model()
        with stderr_discarded():
            module.Interpreter(model_content=content, num_threads=1).allocate_tensors()


def quiet_environment(module: Any) -> Any:
    """Return a new official ``Environment``, which makes LiteRT print only errors from now on.

    In untested versions, LiteRT still prints everything.
    """
    global _is_quiet
    runtime = compiled_model_runtime(module)
    if _is_quiet or runtime.version not in VERSIONS or not is_known(runtime):
        return module.Environment.create()
    with stderr_discarded():  # LiteRT's first environment prints before its logger can be set
        environment = module.Environment.create()
        holder = c_void_p.from_address(capsule_address(environment) + _PROXY).value or 0
        table = c_void_p.from_address(holder).value or 0
        address = c_void_p.from_address(table).value or 0
        options = _Options(
            _Option(_ACCELERATORS, _INTEGER, 0), _Option(_LEAST_SEVERITY, _INTEGER, _ERROR)
        )
        for create in (_CREATE(address), exported_function("LiteRtCreateEnvironment")):
            create(len(options), options, byref(c_void_p()))  # one for each copy of the library
    _is_quiet = True
    return environment


@contextlib.contextmanager
def stderr_discarded() -> Iterator[None]:
    """Context in which standard error, also that of C code, goes to the null device."""
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # closed before Python started
        yield
        return
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)
