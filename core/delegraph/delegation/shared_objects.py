"""Objects that the interpreters of a process share, such as an engine or a compiled network."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

Shared = TypeVar("Shared")


class _Holder:
    """Holds one shared object while at least one interpreter uses the object."""

    __slots__ = ("__weakref__", "lock", "values")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.values: list[object] = []  # empty until it is made


_holders: WeakValueDictionary[Hashable, _Holder] = WeakValueDictionary()
_lock = threading.Lock()


def shared_object(
    kept: MutableMapping[Any, Any], key: Hashable, make: Callable[[], Shared]
) -> Shared:
    """Return the object that all interpreters of this process have under *key*.

    The object is released when the last interpreter that has asked for it closes.

    Args:
        kept: mapping that belongs to one interpreter and ends with it; it keeps the object alive.
        key: who shares it: begin with the delegate's name, ``("mine", device)``.
        make: makes it; called once, however many threads ask. What it raises is not kept.
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
