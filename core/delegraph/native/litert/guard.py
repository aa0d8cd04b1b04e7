"""Guard: accepts only runtimes whose C structs are those of :mod:`delegraph.native.abi`.

A tested version is accepted at once. Any other version is checked in a separate process, since a
wrong layout may crash: :mod:`delegraph.native.litert.self_check`, or ``compiled_model_check``, runs
a small model with a delegate that compares all values it reads with the expected values. The cache
stores the result, by version and library, in a file that only this user may write, because a forged
result would let unsafe native code run.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from importlib_metadata import version

from delegraph.delegation.blob_cache import BlobCache
from delegraph.errors import UnsupportedRuntimeError
from delegraph.native.abi import is_known_platform
from delegraph.native.litert.installed_runtimes import (
    MODULES,
    OfficialRuntime,
    compiled_model_module,
    compiled_model_runtime,
    runtime_of,
)
from delegraph.processes.child import start
from delegraph.processes.ending import how_it_ended

KNOWN = {
    "ai_edge_litert": {
        "1.0.1", "1.1.2", "1.2.0", "1.4.0", "2.0.3", "2.1.0", "2.1.6", "2.2.0", "2.3.0",
    },
    "tflite_runtime": {"2.14.0"},
    "tensorflow": {"2.19.1"},
}  # fmt: skip
"""Tested versions by package: ``make litert-matrix`` passes on :data:`TRIED_PLATFORM`."""

TRIED_PLATFORM = ("linux", "x86_64")

KNOWN_COMPILED_MODELS = {"2.1.6", "2.2.0", "2.3.0"}
"""Versions of ``ai_edge_litert`` whose ``CompiledModel`` was tested on this platform."""

_TIMEOUT = 120  # seconds; importing TensorFlow takes ten


def require_known(namespace: Mapping[str, Any]) -> None:
    """Raise an error unless the interpreter module with the globals *namespace* is accepted.

    Raises:
        UnsupportedRuntimeError: the module's runtime cannot run Delegraph's delegates; the message
            says why.
    """
    library = getattr(namespace.get("_interpreter_wrapper"), "__file__", "")
    key = str(namespace.get("__name__")), str(library)
    if key not in _refusals:
        _refusals[key] = _refusal_of(lambda: runtime_of(namespace))
    refusal = _refusals[key]
    if refusal is not None:
        raise UnsupportedRuntimeError(refusal)


def require_known_compiled_model() -> None:
    """Raise an error unless Delegraph's delegates may be used in the official ``CompiledModel``.

    Raises:
        UnsupportedRuntimeError: the delegates may not be used, or the class is not installed; the
            message says why.
    """
    module = compiled_model_module()
    key = str(module.__name__), str(module.__file__)
    if key not in _refusals:
        _refusals[key] = _refusal_of(lambda: compiled_model_runtime(module))
    refusal = _refusals[key]
    if refusal is not None:
        raise UnsupportedRuntimeError(refusal)


_refusals: dict[tuple[str, str], str | None] = {}
"""Mapping from module and library to the reason for the rejection, None if accepted."""


def _refusal_of(find: Callable[[], OfficialRuntime]) -> str | None:
    """Text that says why a runtime may not be used; None if it may be used.

    Args:
        find: function that returns the installed runtime; an error that it raises is a reason, too.
    """
    platform_refusal = unsupported_platform()
    if platform_refusal is not None:
        return platform_refusal
    try:
        runtime = find()
    except UnsupportedRuntimeError as error:
        return str(error)
    if is_known(runtime):
        return None
    return kept_verdict(runtime)


def unsupported_platform() -> str | None:
    """Text that says why official runtimes do not work on this platform; None if they do."""
    found = f"{platform.python_implementation()} on {sys.platform} {platform.machine()}"
    wanted = "64-bit little-endian CPython on Linux or macOS"
    text = f"delegates in an official runtime need {wanted}; this is {found}"
    return None if is_known_platform() else text


def is_known(runtime: OfficialRuntime) -> bool:
    """Whether the version of *runtime* has been tested on this platform."""
    here = (sys.platform, platform.machine())
    return here == TRIED_PLATFORM and runtime.version in _tried(runtime)


def _tried(runtime: OfficialRuntime) -> Collection[str]:
    """Return the versions of a runtime's package with which Delegraph was tested."""
    if runtime.api == "CompiledModel":
        return KNOWN_COMPILED_MODELS if runtime.package == "ai_edge_litert" else ()
    return KNOWN.get(runtime.package, ())


def kept_verdict(runtime: OfficialRuntime) -> str | None:
    """Text that says why an untested runtime is rejected; None if it passed the check.

    The result of the check is read from the cache; without an entry, the runtime is checked.
    """
    key = f"{runtime} {runtime.fingerprint} delegraph {version('delegraph')}"
    kept = BlobCache("litert-verdicts", "1")
    return kept.read_or_make(key, lambda: (check(runtime) or "").encode()).decode() or None


def check(runtime: OfficialRuntime) -> str | None:
    """Check a runtime's C structs in a child process; return the fault, or None if it has none."""
    if runtime.package not in MODULES:
        return f"{runtime.package} is none of the official runtimes: {', '.join(sorted(MODULES))}"
    program = "self_check" if runtime.api == "Interpreter" else "compiled_model_check"
    try:
        child = start(f"{__package__}.{program}:main", [runtime.package], keeps_errors=True)
    except OSError as error:
        return f"{runtime} could not be checked: {error}"
    status = child.wait(_TIMEOUT)
    child.close()
    if status is None:
        return f"{runtime} could not be checked: no answer after {_TIMEOUT} s"
    if status == 0:
        return None
    how = how_it_ended(status) if status < 0 else child.last_line()
    return (
        f"{runtime} has other C structs than Delegraph knows, so delegates in Python cannot run in "
        f"it ({how}). They run in delegraph.Interpreter; versions of the runtime that were tried: "
        f"{', '.join(sorted(_tried(runtime)))}"
    )
