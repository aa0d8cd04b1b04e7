"""Converts the user's names and objects to delegates that can be applied."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from typing import Any

from delegraph.delegation.delegate import Delegate
from delegraph.delegation.driver import SimpleDelegate
from delegraph.delegation.simple_delegate import SimpleDelegateInterface
from delegraph.errors import (
    ArgumentAttributeError,
    ArgumentError,
    ArgumentTypeError,
    PluginOptionError,
)
from delegraph.plugins import delegate_file
from delegraph.plugins.address import DelegateAddress
from delegraph.plugins.options import Given, split_text
from delegraph.plugins.plugin_set import installed, only_one
from delegraph.plugins.specs import Isolate
from delegraph.runtime.arguments import AnyPath
from delegraph.runtime.delegates.compiled_delegates import delegate_of_library, is_library
from delegraph.runtime.deprecation import warn_deprecated
from delegraph.runtime.isolation.isolation import AS_SPECIFIED, Isolation
from delegraph.runtime.isolation.source import DelegateSource

AnyDelegate = str | Delegate | SimpleDelegateInterface
"""A delegate, or the name of an installed delegate: ``name``, ``name:key=value`` or ``dist:name``.

A delegate in a file is named by the path: ``path/to/lib.so``, ``mine.py``, ``mine.py:key=value``.
"""

_PYTHON = ".py"
"""Ending of the path of a Python file."""

ManyDelegates = Iterable[AnyDelegate] | Mapping[str, Any]
"""Several delegates: an ordered list, a set, or a mapping from names to options."""


def load_delegate(
    library: AnyPath,
    options: Mapping[str, Any] | None = None,
    *,
    isolate: Isolate | None = None,
    timeout: float | None = None,
) -> Delegate:
    """Return an installed delegate, a compiled library's delegate, or a Python file's delegate.

    Args:
        library: name of an installed delegate, as ``delegraph plugins list`` shows it; path of a
            Python file, which ends in ``.py`` and is run anew at each call (what it may define:
            :func:`delegraph.plugins.delegate_file.delegate_from_file`); or path of a library with
            a TFLite external delegate, which has a folder in front, or ends like ``.so``, or is a
            ``Path``.
        options: options of the delegate by name; a library receives the values as text.
        isolate: ``"process"`` runs the delegate in a separate process and imports none of its code
            here. ``"none"`` runs it in this process. None follows the delegate's spec.
        timeout: seconds that a kernel in a separate process may take for an invoke. None means the
            limit in the delegate's spec, or no limit if the spec has none.

    Raises:
        ArgumentTypeError: *library* is neither text nor a path, or *options* is no mapping.
        ArgumentError: the Python file does not exist, a *timeout* is given without a process, or
            the system has no isolated delegates.
        DelegateLibraryError: (OSError) the library is missing, or cannot be loaded.
        NotADelegateError: (AttributeError) the library has no external delegate.
        DelegateLoadError: (ValueError) the library rejects its options; base class of the two
            errors above.
        UnknownDelegateError: no installed plugin provides the delegate.
        PluginLoadError: the delegate is installed but broken, or the Python file defines none.
        PluginOptionError: an option is unknown or has a wrong value.
    """
    if not isinstance(library, str | bytes | os.PathLike):
        raise ArgumentTypeError(f"the name of a delegate is text or a path, not {library!r}")
    if options is not None and not isinstance(options, Mapping | str):
        raise ArgumentTypeError(f"the options of a delegate are a dictionary, not {options!r}")
    name, isolation = os.fsdecode(library), Isolation(isolate, timeout)
    file = _file(name) if isinstance(library, str) else DelegateAddress(name)
    if file is None:
        return installed_delegate(name, options, isolation)
    if file.name.endswith(_PYTHON):
        return delegate_of_file(file.name, only_one(file, options), isolation)
    if isolation.is_wanted:
        return isolated(DelegateSource.of(name, options), isolation.timeout)
    isolation.require_no_timeout(f"delegate {name!r}")
    return _load_library(file, options)


def installed_delegate(
    name: str, options: Mapping[str, Any] | None = None, isolation: Isolation = AS_SPECIFIED
) -> Delegate:
    """Return the installed delegate *name*; *isolation* says whether it gets its own process.

    Unlike :func:`load_delegate`, it accepts no libraries.
    """
    if not isolation.isolate or _file(name) is not None:  # no delegate is called "which"
        isolation = isolation.of(installed().find(name).spec)
    if isolation.is_wanted:
        return isolated(DelegateSource.of(name, options), isolation.timeout)
    isolation.require_no_timeout(f"delegate {name!r}")
    return installed().create_delegate(name, options)


def delegate_from_file(
    path: AnyPath,
    options: Mapping[str, Any] | str | None = None,
    *,
    isolate: Isolate | None = None,
    timeout: float | None = None,
) -> Delegate:
    """Return the delegate of the Python file *path*. Deprecated: use :func:`load_delegate`."""
    warn_deprecated("delegraph.delegate_from_file", "delegraph.load_delegate")
    return delegate_of_file(os.fsdecode(path), options, Isolation(isolate, timeout))


def delegate_of_file(
    path: str, options: Given = None, isolation: Isolation = AS_SPECIFIED
) -> Delegate:
    """Return the delegate of the Python file *path*, whose name need not end in ``.py``.

    *isolation* says whether it gets its own process.
    """
    if isolation.is_wanted:
        return isolated(DelegateSource.of(path, options, is_python_file=True), isolation.timeout)
    isolation.require_no_timeout(f"delegate file {path!r}")
    return delegate_file.delegate_from_file(path, options)


def is_installed_name(name: str) -> bool:
    """Whether *name* names an installed delegate, not a file."""
    return _file(name) is None


def isolated(source: DelegateSource, timeout: float | None) -> Delegate:
    """Return a delegate, loaded from *source*, that runs in a separate process.

    *timeout* is the number of seconds that an invoke may take there; None means no limit.
    """
    from delegraph.runtime.isolation.delegate import IsolatedDelegate

    return IsolatedDelegate(source, timeout)


def as_delegates(
    delegates: ManyDelegates | None, isolation: Isolation = AS_SPECIFIED
) -> list[Delegate]:
    """Convert *delegates* to a list, in the order in which they will be applied.

    A list keeps its order. A set, or a mapping from names to options (None for the defaults), is
    sorted: by the ``rank`` that each installed delegate declares, then by name. Delegates that are
    not given by name have rank 0.

    Raises:
        ArgumentAttributeError: *delegates* is a single delegate, or an item is no delegate.
        ArgumentTypeError: *delegates* cannot be iterated.
        PluginError: no installed delegate of a name can be used, or its options do not fit.
    """
    if isinstance(delegates, str | Delegate | SimpleDelegateInterface):
        raise ArgumentAttributeError(f"delegates is a list; write delegates=[{delegates!r}]")
    if delegates and not isinstance(delegates, Iterable):
        raise ArgumentTypeError(f"delegates is a list of names or objects, not {delegates!r}")
    isolate, timeout = isolation.isolate, isolation.timeout
    if isolation.is_wanted and isinstance(delegates, Mapping | Set):
        options = delegates if isinstance(delegates, Mapping) else dict.fromkeys(delegates)
        made: list[Any] = [
            as_delegate(each, isolation)
            if options[each] is None
            else load_delegate(each, options[each], isolate=isolate, timeout=timeout)
            for each in options
        ]
        return sorted(made, key=lambda delegate: (delegate.rank, delegate.name()))
    if isinstance(delegates, Mapping):
        names = sorted(delegates, key=_rank)
        return [
            load_delegate(name, delegates[name], isolate=isolate, timeout=timeout) for name in names
        ]
    if isinstance(delegates, Set):
        delegates = sorted(delegates, key=_rank)
    return [as_delegate(delegate, isolation) for delegate in delegates or ()]


def as_delegate(delegate: AnyDelegate, isolation: Isolation = AS_SPECIFIED) -> Delegate:
    """Return *delegate* if it is a delegate, or the delegate that it names.

    Raises:
        ArgumentAttributeError: *delegate* is neither a delegate nor a name.
        ArgumentError: *delegate* is an object and must run in a separate process, which only named
            delegates and files can.
        PluginError: no installed delegate of that name can be used.
        DelegateLoadError: a library gives no delegate.
    """
    if isinstance(delegate, str):
        return load_delegate(delegate, isolate=isolation.isolate, timeout=isolation.timeout)
    if isinstance(delegate, Delegate) and delegate.is_isolated:
        return delegate
    if isolation.is_wanted and isinstance(delegate, Delegate | SimpleDelegateInterface):
        raise ArgumentError(
            f"delegate {type(delegate).__name__} is an object, which cannot be passed to another "
            "process; for isolate='process' give an installed delegate's name, or a file's path"
        )
    if isinstance(delegate, Delegate | SimpleDelegateInterface):
        isolation.require_no_timeout(f"delegate {type(delegate).__name__}")
    if isinstance(delegate, SimpleDelegateInterface):
        return SimpleDelegate(delegate)
    if isinstance(delegate, Delegate):
        return delegate
    given = f"not {type(delegate).__name__}"
    if isinstance(delegate, type):
        given = f"not a class: write {delegate.__name__}()"
    elif isinstance(delegate, tuple):
        given = "not tuple: write options behind the name, 'name:option=value'"
    raise ArgumentAttributeError(
        f"a delegate is a name, a SimpleDelegateInterface or a Delegate, {given}"
    )


def _file(text: str) -> DelegateAddress | None:
    """Return the path and options of the file that *text* names; None if it is no file's name."""
    whole = DelegateAddress(text)
    if _is_path(text) and os.path.isfile(text):
        return whole
    try:
        address = DelegateAddress.parse(text)
    except PluginOptionError:  # a path may have any characters
        address = whole
    return address if _is_path(address.name) else None


def _is_path(name: str) -> bool:
    return name.endswith(_PYTHON) or is_library(name)


def _load_library(address: DelegateAddress, options: Mapping[str, Any] | None) -> Delegate:
    if options is None:
        options = split_text(address.name, address.options)
    elif address.options:
        raise PluginOptionError(
            f"options of delegate {address.name!r} are given twice: {address.options!r} with the "
            f"path, and {options!r}"
        )
    return delegate_of_library(address.name, options)


def _rank(delegate: AnyDelegate) -> tuple[int, str]:
    """Sort key of a delegate in a set or mapping: the spec's rank, then the name."""
    if isinstance(delegate, str) and _file(delegate) is None:
        spec = installed().find(delegate).spec
        return spec.rank, spec.name
    return 0, delegate if isinstance(delegate, str) else as_delegate(delegate).name()
