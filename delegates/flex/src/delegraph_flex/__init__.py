"""Runs the TensorFlow operators of ``.tflite`` files (SELECT_TF_OPS), and makes such files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delegraph_flex.conversion import convert as convert
    from delegraph_flex.rewriting import CannotFlexify as CannotFlexify
    from delegraph_flex.rewriting import flexify as flexify

__all__ = ["CannotFlexify", "convert", "flexify"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: the plugin's module stays light."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = "conversion" if name == "convert" else "rewriting"
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
