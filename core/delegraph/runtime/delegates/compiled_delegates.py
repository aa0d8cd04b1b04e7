"""Delegates in compiled libraries; a user names such a delegate by the library's path."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate

LOADER = "delegraph.native.compiled.external_delegate"
"""Name of the module that makes these delegates.

The module is in a higher layer, so it is loaded by name like a plugin, and only when a library is
requested.
"""

_LIBRARY = re.compile(r".*(\.so(\.\d+)*|\.dylib|\.dll)|.*[/\\].*", re.DOTALL)


def is_library(name: str) -> bool:
    r"""Whether *name* is the path of a library, not the name of an installed delegate.

    >>> is_library("libedgetpu.so.1"), is_library("./mine"), is_library("numba_cpu")
    (True, True, False)
    """
    return _LIBRARY.fullmatch(name) is not None and not name.endswith(".tflite")


def delegate_of_library(path: str, options: Mapping[str, Any] | None = None) -> Delegate:
    """Return the delegate of the compiled library at *path*.

    Raises:
        DelegateLoadError: the library is missing, cannot be loaded, is no external delegate, or
            rejects its options.
    """
    delegate: Delegate = importlib.import_module(LOADER).ExternalDelegate(path, options or {})
    return delegate


def delegate_at(address: int) -> Delegate:
    """Return the compiled delegate whose ``TfLiteDelegate`` struct is at *address*.

    Raises:
        DelegateError: the address is 0.
        DelegateLoadError: the object there has no function that claims nodes.
    """
    delegate: Delegate = importlib.import_module(LOADER).NativeDelegate(address)
    return delegate
