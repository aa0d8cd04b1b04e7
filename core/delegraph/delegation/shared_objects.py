"""Objects that all interpreters of a process share, such as an engine or a compiled network."""

from __future__ import annotations

from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from delegraph.locks import Lock

Shared = TypeVar("Shared")


class _Holder:
    """Keeps one shared object alive as long as an interpreter uses it."""

    __slots__ = ("__weakref__", "lock", "values")

    def __init__(self) -> None:
        self.lock = Lock()
        self.values: list[object] = []  # empty until the object is created


_holders: WeakValueDictionary[Hashable, _Holder] = WeakValueDictionary()
_lock = Lock()


def shared_object(
    kept: MutableMapping[Any, Any], key: Hashable, make: Callable[[], Shared]
) -> Shared:
    """Return the object with the key *key*, which all interpreters of this process share.

    The object is released when the last interpreter that requested it closes.

    Args:
        kept: mapping of one interpreter, which keeps the object alive while the interpreter lives.
        key: key of the object; its first item is the delegate's name: ``("mine", device)``.
        make: function that creates the object; called once, even if several threads ask. If it
            raises an error, the next caller tries again.
    """
    with _lock:
        holder = _holders.get(key)
        if holder is None:
            holder = _holders[key] = _Holder()
    kept[_Holder, key] = holder
    with holder.lock:
        if not holder.values:
            holder.values.append(make())
    return cast(Shared, holder.values[0])
