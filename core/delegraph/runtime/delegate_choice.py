"""From what users write to a delegate that can be applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delegraph.delegation.delegate import Delegate
from delegraph.delegation.simple_delegate import SimpleDelegate, SimpleDelegateInterface
from delegraph.errors import ArgumentError
from delegraph.plugins.plugin_set import installed

AnyDelegate = str | Delegate | SimpleDelegateInterface
"""A delegate, or the name of an installed one: ``name``, ``name:key=value`` or ``dist:name``."""


def load_delegate(library: str, options: Mapping[str, Any] | None = None) -> Delegate:
    """Return an installed delegate, ready for ``experimental_delegates``.

    Args:
        library: name of an installed delegate, as ``delegraph plugins list`` shows it.
        options: its options by name.

    Raises:
        UnknownDelegateError: no installed plugin provides it.
        PluginLoadError: it is installed but broken.
        PluginOptionError: an unknown option or a bad value.
    """
    return installed().create_delegate(library, options)


def as_delegate(delegate: AnyDelegate) -> Delegate:
    """Return the delegate that *delegate* is or names.

    Raises:
        ArgumentError: it is neither.
        PluginError: no installed delegate of that name can be used.
    """
    if isinstance(delegate, str):
        return installed().create_delegate(delegate)
    if isinstance(delegate, SimpleDelegateInterface):
        return SimpleDelegate(delegate)
    if isinstance(delegate, Delegate):
        return delegate
    raise ArgumentError(
        f"a delegate is a name, a SimpleDelegateInterface or a Delegate, not "
        f"{type(delegate).__name__}"
    )
