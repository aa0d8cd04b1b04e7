"""A stand-in for the Edge TPU: its compiler, its custom operator and its devices, simulated."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delegraph_edgetpu.compiler import compile as compile
    from delegraph_edgetpu.custom_op import edgetpu_custom_op as edgetpu_custom_op
    from delegraph_edgetpu.devices import DeviceStatistics as DeviceStatistics
    from delegraph_edgetpu.devices import statistics as statistics
    from delegraph_edgetpu.errors import CannotCompile as CannotCompile
    from delegraph_edgetpu.errors import ExecutableError as ExecutableError
    from delegraph_edgetpu.errors import NeedsDevice as NeedsDevice
    from delegraph_edgetpu.errors import PipelineError as PipelineError
    from delegraph_edgetpu.pipeline import PipelinedModelRunner as PipelinedModelRunner
    from delegraph_edgetpu.pipeline import PipelineStatistics as PipelineStatistics

__all__ = [
    "CannotCompile",
    "DeviceStatistics",
    "ExecutableError",
    "NeedsDevice",
    "PipelineError",
    "PipelineStatistics",
    "PipelinedModelRunner",
    "compile",
    "edgetpu_custom_op",
    "statistics",
]

_MODULES = {
    "CannotCompile": "errors",
    "DeviceStatistics": "devices",
    "ExecutableError": "errors",
    "NeedsDevice": "errors",
    "PipelineError": "errors",
    "PipelineStatistics": "pipeline",
    "PipelinedModelRunner": "pipeline",
    "compile": "compiler",
    "edgetpu_custom_op": "custom_op",
    "statistics": "devices",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: the plugin's module stays light."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
