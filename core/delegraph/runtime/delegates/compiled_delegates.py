"""Delegates of compiled libraries, by their path; who loads them is told from above.

The layer that speaks the C interface stands above this one, so ``delegraph`` itself, which knows
both, gives its loader to :func:`set_library_loader`. This module stays light: it is imported with
``delegraph``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate

LibraryLoader = Callable[[str, Mapping[str, Any]], "Delegate"]
"""Makes the delegate of a library, given its path and options."""

_loaders: list[LibraryLoader] = []

_LIBRARY = re.compile(r".*(\.so(\.\d+)*|\.dylib|\.dll)|.*[/\\].*", re.DOTALL)


def is_library(name: str) -> bool:
    r"""Return whether *name* is a library's, not an installed delegate's.

    >>> is_library("libedgetpu.so.1"), is_library("./mine"), is_library("numba_cpu")
    (True, True, False)
    """
    return _LIBRARY.fullmatch(name) is not None


def set_library_loader(loader: LibraryLoader) -> None:
    """Let *loader* make the delegates of compiled libraries from now on."""
    _loaders[:] = [loader]


def delegate_of_library(path: str, options: Mapping[str, Any] | None = None) -> Delegate:
    """Return the delegate of a compiled library.

    Raises:
        DelegateLoadError: the library is not there, cannot be loaded, is no external delegate, or
            refuses its options.
    """
    return _loaders[-1](path, options or {})
