"""From what users write to delegates that can be applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from delegraph.delegation.delegate import Delegate
from delegraph.delegation.simple_delegate import SimpleDelegate, SimpleDelegateInterface
from delegraph.errors import ArgumentError
from delegraph.plugins.plugin_set import installed

AnyDelegate = str | Delegate | SimpleDelegateInterface
"""A delegate, or the name of an installed one: ``name``, ``name:key=value`` or ``dist:name``."""

ManyDelegates = Iterable[AnyDelegate] | Mapping[str, Any]
"""Several delegates: in order, or in no order (a set, or a mapping of names to options)."""


def load_delegate(library: str, options: Mapping[str, Any] | None = None) -> Delegate:
    """Return an installed delegate, ready for ``experimental_delegates``.

    Args:
        library: name of an installed delegate, as ``delegraph plugins list`` shows it.
        options: its options by name.

    Raises:
        ArgumentError: *library* is no text.
        UnknownDelegateError: no installed plugin provides it.
        PluginLoadError: it is installed but broken.
        PluginOptionError: an unknown option or a bad value.
    """
    if not isinstance(library, str):
        raise ArgumentError(f"the name of a delegate is text, not {library!r}")
    return installed().create_delegate(library, options)


def as_delegates(delegates: ManyDelegates | None) -> list[Delegate]:
    """Return delegates in the order in which they are applied.

    A list keeps its order. A set, and a mapping of names to options (None for the defaults), have
    none: there the ``rank`` that each installed delegate declares decides, ascending, ties by name.
    What is no name has rank 0.

    Raises:
        ArgumentError: a single delegate instead of a list, or an item that is none.
        PluginError: no installed delegate of a name can be used, or its options do not fit.
    """
    if isinstance(delegates, str | Delegate | SimpleDelegateInterface):
        raise ArgumentError(f"delegates is a list; write delegates=[{delegates!r}]")
    if isinstance(delegates, Mapping):
        names = sorted(delegates, key=_rank)
        return [load_delegate(name, delegates[name]) for name in names]
    if isinstance(delegates, Set):
        delegates = sorted(delegates, key=_rank)
    return [as_delegate(delegate) for delegate in delegates or ()]


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


def _rank(delegate: AnyDelegate) -> tuple[int, str]:
    """Return the sort key of a delegate among several without order."""
    if isinstance(delegate, str):
        spec = installed().find(delegate).spec
        return spec.rank, spec.name
    return 0, as_delegate(delegate).name()
