"""The installed official runtimes, with package, version and library of each."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import importlib_metadata

from delegraph.errors import ArgumentError, UnsupportedRuntimeError

MODULES = {
    "ai_edge_litert": "ai_edge_litert.interpreter",
    "tflite_runtime": "tflite_runtime.interpreter",
    "tensorflow": "tensorflow.lite.python.interpreter",
}
"""Mapping from a package to its module with ``Interpreter``, in the order of preference."""

_DISTRIBUTIONS = {
    "ai_edge_litert": ("ai-edge-litert", "ai-edge-litert-nightly"),
    "tflite_runtime": ("tflite-runtime", "tflite-runtime-nightly"),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-macos", "tf-nightly"),
}


@dataclass(frozen=True, slots=True)
class OfficialRuntime:
    """An installed official runtime.

    Attributes:
        package: ``ai_edge_litert``, ``tflite_runtime`` or ``tensorflow``.
        version: version of its distribution.
        extension: path of its Python extension module.
    """

    package: str
    version: str
    extension: Path

    def __str__(self) -> str:
        return f"{self.package} {self.version}"

    @property
    def fingerprint(self) -> str:
        """Hash of the extension module, and of sizes and times of the libraries beside it."""
        digest = hashlib.sha256(self.extension.read_bytes())
        for path in sorted(self.extension.parent.glob("*.so*")):
            status = path.stat()
            digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
        return digest.hexdigest()


def interpreter_module(package: str | None = None) -> Any:
    """Return the module with the ``Interpreter`` of *package*, by default of the first installed.

    Raises:
        ArgumentError: *package* is not in :data:`MODULES`.
        UnsupportedRuntimeError: *package* is not installed, or no runtime is.
    """
    if package is not None and package not in MODULES:
        raise ArgumentError(f"no runtime {package!r}; there are: {', '.join(sorted(MODULES))}")
    for name in MODULES if package is None else [package]:
        if name in sys.modules or find_spec(name) is not None:
            return import_module(MODULES[name])
    lacking = f"{package} is not installed" if package else "no TFLite runtime is installed"
    raise UnsupportedRuntimeError(
        f"{lacking}; this installs the current one: pip install ai-edge-litert"
    )


def runtime_of(namespace: Mapping[str, Any]) -> OfficialRuntime:
    """Return the runtime whose interpreter module has the globals *namespace*.

    Raises:
        UnsupportedRuntimeError: no runtime's module has these globals.
    """
    name = str(namespace.get("__name__", ""))
    library = getattr(namespace.get("_interpreter_wrapper"), "__file__", None)
    if library is None:
        raise UnsupportedRuntimeError(
            f"{name!r} asks for a delegate, and is no interpreter module of an official runtime"
        )
    package = next((p for p, module in MODULES.items() if module == name), name.partition(".")[0])
    return OfficialRuntime(package, _version(package), Path(library))


def _version(package: str) -> str:
    for distribution in _DISTRIBUTIONS.get(package, (package,)):
        try:
            return importlib_metadata.version(distribution)
        except importlib_metadata.PackageNotFoundError:
            continue
    return str(getattr(sys.modules.get(package), "__version__", "unknown"))
