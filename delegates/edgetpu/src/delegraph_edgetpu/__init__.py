"""A stand-in for the Edge TPU: its compiler, its custom operator and its devices, simulated."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delegraph_edgetpu.compiler import compile as compile
    from delegraph_edgetpu.devices import statistics as statistics
    from delegraph_edgetpu.errors import CannotCompile as CannotCompile
    from delegraph_edgetpu.errors import ExecutableError as ExecutableError
    from delegraph_edgetpu.pipeline import PipelinedModelRunner as PipelinedModelRunner

__all__ = [
    "CannotCompile",
    "ExecutableError",
    "PipelinedModelRunner",
    "compile",
    "statistics",
]

_MODULES = {
    "CannotCompile": "errors",
    "ExecutableError": "errors",
    "PipelinedModelRunner": "pipeline",
    "compile": "compiler",
    "statistics": "devices",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: the plugin's module stays light."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
