"""Converts the delegates given to an official interpreter's constructor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from delegraph.delegation.delegate import Delegate
from delegraph.delegation.simple_delegate import SimpleDelegateInterface
from delegraph.errors import ArgumentError
from delegraph.native.litert.delegate import LiteRtDelegate
from delegraph.runtime.delegates.default_incidents import blamed, incident_of
from delegraph.runtime.delegates.requested_delegates import ManyDelegates, as_delegates
from delegraph.runtime.isolation.isolation import Isolation


class AnnouncedDelegates(list[Any]):
    """List of delegates that calls a function when the official constructor begins to read it.

    The constructor has loaded the model by then.
    """

    def __init__(self, delegates: Sequence[Any], on_loaded: Callable[[], object] | None) -> None:
        super().__init__(delegates)
        self._on_loaded = on_loaded

    def __bool__(self) -> bool:
        return True  # the constructor reads the first item only if true

    def __iter__(self) -> Iterator[Any]:
        if self._on_loaded is not None:
            self._on_loaded()
        return super().__iter__()


def experimental_delegates(delegates: Sequence[Any] | None, isolation: Isolation) -> list[Any]:
    """Convert the official argument *delegates* to Delegraph's objects, except official delegates.

    *isolation* says which delegates run in separate processes.

    Raises:
        ArgumentError: *delegates* is a single name instead of a list.
    """
    if isinstance(delegates, str):
        raise ArgumentError(f"experimental_delegates is a list; write [{delegates!r}]")
    return split_delegates(delegates, isolation)


def split_delegates(
    delegates: ManyDelegates | Iterable[Any] | None, isolation: Isolation
) -> list[Any]:
    """Convert *delegates* to Delegraph's objects; official delegates stay as they are.

    The order is that of ``as_delegates``. *isolation* says which delegates run in separate
    processes.

    Raises:
        ArgumentAttributeError: *delegates* is a single delegate instead of a list, or an item is no
            delegate.
        ArgumentTypeError: *delegates* cannot be iterated.
    """
    delegates = () if delegates is None else delegates
    is_one = isinstance(delegates, str | Delegate | SimpleDelegateInterface)
    if is_one or isinstance(delegates, Mapping | Set) or not isinstance(delegates, Iterable):
        return list(as_delegates(delegates, isolation))
    found: list[Any] = []
    for delegate in delegates:
        is_official = hasattr(delegate, "_get_native_delegate_pointer")
        found += [delegate] if is_official else as_delegates([delegate], isolation)
    return found


def failed_while_made(delegates: Sequence[LiteRtDelegate], error: Exception) -> None:
    """Record that a default delegate failed, so that the interpreter was created without it.

    Args:
        delegates: the delegates with which creating the interpreter failed.
        error: the error, which tells the delegate at fault.

    Raises:
        DefaultDelegateWarning: the user turns warnings into errors.
    """
    delegate = blamed([each.delegate for each in delegates], error)
    guilty = next(each for each in delegates if each.delegate is delegate)
    guilty.failures.record(incident_of(delegate, 0, error), "LiteRT's kernels")
