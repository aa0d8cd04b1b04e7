"""The C interface of TFLite, by ctypes alone: the delegates of one host in the other.

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delegraph.native.litert.delegate import litert_delegate as litert_delegate
    from delegraph.native.litert.interpreter import LiteRtInterpreter as LiteRtInterpreter

_HOME = {"LiteRtInterpreter": "litert.interpreter", "litert_delegate": "litert.delegate"}

__all__ = [*sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
