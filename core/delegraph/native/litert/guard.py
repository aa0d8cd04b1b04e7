"""Guard: admits delegates only to runtimes whose C structs match :mod:`delegraph.native.abi`.

A tested version is admitted at once. Any other version is checked in a child process, because a
wrong layout may crash. There, :mod:`delegraph.native.litert.self_check` runs a small model with a
delegate that compares each value that it reads with the expected one. The verdict is stored, by
version and library, in a file that only this user may write, because a false verdict could run
native code.
"""

from __future__ import annotations

import json
import logging
import platform
import struct
import sys
from collections.abc import Mapping
from typing import Any

from importlib_metadata import version

from delegraph.delegation.cache_files import CacheFolder, user_cache_folder
from delegraph.errors import UnsupportedRuntimeError
from delegraph.json_records import from_json
from delegraph.native.litert.installed_runtimes import MODULES, OfficialRuntime, runtime_of
from delegraph.processes.child import start
from delegraph.processes.ending import how_it_ended

KNOWN = {
    "ai_edge_litert": {
        "1.0.1", "1.1.2", "1.2.0", "1.4.0", "2.0.3", "2.1.0", "2.1.6", "2.2.0", "2.3.0",
    },
    "tflite_runtime": {"2.14.0"},
    "tensorflow": {"2.19.1"},
}  # fmt: skip
"""Tested versions: ``make litert-matrix`` passes with them on :data:`TRIED_PLATFORM`."""

TRIED_PLATFORM = ("linux", "x86_64")

VERDICTS = "litert.json"
"""Name of the file in the user's cache with the verdicts."""

logger = logging.getLogger(__name__)

_TIMEOUT = 120  # seconds; importing TensorFlow takes ten


def require_known(namespace: Mapping[str, Any]) -> None:
    """Raise an error unless the interpreter module with the globals *namespace* is accepted.

    Raises:
        UnsupportedRuntimeError: its runtime cannot run Delegraph's delegates; the message says why.
    """
    library = getattr(namespace.get("_interpreter_wrapper"), "__file__", "")
    key = str(namespace.get("__name__")), str(library)
    if key not in _refusals:
        _refusals[key] = _refusal_of(namespace)
    refusal = _refusals[key]
    if refusal is not None:
        raise UnsupportedRuntimeError(refusal)


_refusals: dict[tuple[str, str], str | None] = {}
"""Mapping from module and library to the verdict, for this process."""


def _refusal_of(namespace: Mapping[str, Any]) -> str | None:
    """Return why a runtime is refused; None if it is accepted."""
    platform_refusal = unsupported_platform()
    if platform_refusal is not None:
        return platform_refusal
    try:
        runtime = runtime_of(namespace)
    except UnsupportedRuntimeError as error:
        return str(error)
    if is_known(runtime):
        return None
    return kept_verdict(runtime)


def unsupported_platform() -> str | None:
    """Return why no official runtime works on this platform; None if they work."""
    found = f"{platform.python_implementation()} on {sys.platform} {platform.machine()}"
    wanted = "64-bit little-endian CPython on Linux or macOS"
    is_right = (
        sys.implementation.name == "cpython"
        and struct.calcsize("P") == 8
        and sys.byteorder == "little"
        and sys.platform in ("linux", "darwin")
    )
    return None if is_right else f"delegates in an official runtime need {wanted}; this is {found}"


def is_known(runtime: OfficialRuntime) -> bool:
    """Return whether this version has been tested on this platform."""
    here = (sys.platform, platform.machine())
    return here == TRIED_PLATFORM and runtime.version in KNOWN.get(runtime.package, ())


def kept_verdict(runtime: OfficialRuntime) -> str | None:
    """Return why an untested runtime is refused, from the cache or a new check; None if accepted.

    The runtime is checked if the user's cache has no usable verdict. The new verdict is stored in
    the cache; if that is impossible, the log says so.
    """
    key = f"{runtime} {runtime.fingerprint} delegraph {version('delegraph')}"
    verdicts: dict[str, str | None] = {}
    trouble = None
    try:
        verdicts = _read_verdicts()
    except OSError as error:
        trouble = error
    if key not in verdicts:
        verdicts[key] = check(runtime)
        try:
            content = json.dumps(verdicts, indent=1).encode()
            CacheFolder(user_cache_folder()).write(VERDICTS, content)
        except OSError as error:
            trouble = error
    if trouble is not None:
        logger.warning(
            "verdicts on runtimes cannot be kept: %s %s; runtimes are checked in each process; "
            "XDG_CACHE_HOME=FOLDER names another place for caches",
            trouble.filename,
            trouble.strerror,
        )
    return verdicts[key]


def _read_verdicts() -> dict[str, str | None]:
    """Return the verdicts in the user's cache; empty if the file is missing or damaged.

    Raises:
        OSError: the file cannot be read, or other users may have written it.
    """
    try:
        content = json.loads(CacheFolder(user_cache_folder()).read(VERDICTS))
        return from_json(dict[str, str | None], content)
    except (FileNotFoundError, ValueError, RecursionError):
        return {}


def check(runtime: OfficialRuntime) -> str | None:
    """Check a runtime in a child process; return why it is refused, or None."""
    if runtime.package not in MODULES:
        return f"{runtime.package} is none of the official runtimes: {', '.join(sorted(MODULES))}"
    try:
        child = start(f"{__package__}.self_check:main", [runtime.package], keeps_errors=True)
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
        f"{', '.join(sorted(KNOWN.get(runtime.package, ())))}"
    )
