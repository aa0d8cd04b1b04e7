"""The installed official runtimes, with package, version and library of each."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import importlib_metadata

from delegraph.errors import ArgumentError, UnsupportedRuntimeError

MODULES = {
    "ai_edge_litert": "ai_edge_litert.interpreter",
    "tflite_runtime": "tflite_runtime.interpreter",
    "tensorflow": "tensorflow.lite.python.interpreter",
}
"""Mapping from a package to its module that has ``Interpreter``, in order of preference."""

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
        version: version of the package's distribution.
        extension: path of the package's extension module.
        api: name of the class that runs models.
    """

    package: str
    version: str
    extension: Path
    api: Literal["Interpreter", "CompiledModel"] = "Interpreter"

    def __str__(self) -> str:
        kind = "" if self.api == "Interpreter" else f" ({self.api})"
        return f"{self.package} {self.version}{kind}"

    @property
    def fingerprint(self) -> str:
        """Hash of the extension module, and of sizes and times of the libraries next to it."""
        digest = hashlib.sha256(self.extension.read_bytes())
        for path in sorted(self.extension.parent.glob("*.so*")):
            status = path.stat()
            digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
        return digest.hexdigest()


def interpreter_module(package: str | None = None) -> Any:
    """Return the module with the ``Interpreter`` of *package*, or of the first installed one.

    Raises:
        ArgumentError: *package* is not in :data:`MODULES`.
        UnsupportedRuntimeError: *package* is not installed, or no runtime is installed.
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


COMPILED_MODEL = "ai_edge_litert.compiled_model"
"""Module with the official ``CompiledModel``."""


def compiled_model_module() -> Any:
    """Return the module with the official ``CompiledModel``.

    Raises:
        UnsupportedRuntimeError: ai_edge_litert is not installed or is older than 2.1.6.
    """
    if "ai_edge_litert" not in sys.modules and find_spec("ai_edge_litert") is None:
        raise UnsupportedRuntimeError(
            "ai_edge_litert is not installed, so there is no CompiledModel: "
            "pip install ai-edge-litert"
        )
    try:
        module = import_module(COMPILED_MODEL)
    except ImportError as error:
        module, reason = None, f": {error}"
    else:
        reason = ""
    if not hasattr(module, "Environment"):
        raise UnsupportedRuntimeError(
            f"ai_edge_litert {_version('ai_edge_litert')} has no CompiledModel with an Environment"
            f"{reason}; version 2.1.6 has: pip install --upgrade ai-edge-litert"
        )
    return module


def compiled_model_runtime(module: Any) -> OfficialRuntime:
    """Return the runtime of the module with ``CompiledModel``."""
    package, extension = COMPILED_MODEL.partition(".")[0], Path(module._cm.__file__)
    return OfficialRuntime(package, _version(package), extension, "CompiledModel")


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
