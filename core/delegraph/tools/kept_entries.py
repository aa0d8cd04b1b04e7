"""List of the entries that delegates keep in a model file, which lies among them in the file."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from delegraph.delegation.hashing import hex_digest
from delegraph.graph.model import Model
from delegraph.json_records import JsonRecord, from_json

NAMESPACE = "delegraph"
"""Namespace of the list among the entries of delegates."""

_NAME = f"{NAMESPACE}/1/list"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class KeptEntries(JsonRecord):
    """Entries of a delegate in a model file, for one processor level and number of threads.

    Attributes:
        delegate: the delegate with its options, in the command line's syntax.
        provider: the distribution that provides it, with its version.
        threads: number of threads of the interpreter; None means its default on the compiling
            machine.
        entries: number of entries, without those shared with earlier levels or thread numbers.
        size: number of bytes of these entries.
        used_threads: number of threads that the delegate uses for *threads*; None if it does not
            tell.
        stores: namespace and version of the entries, as ``namespace/version``.
        names: names of all entries, the shared ones too; empty if they were read from a list.
    """

    delegate: str
    provider: str
    threads: int | None
    entries: int
    size: int
    used_threads: int | None = None
    stores: tuple[str, ...] = ()
    names: frozenset[str] = field(
        default=frozenset(), repr=False, compare=False, metadata={"json_key": None}
    )


def store_of(name: str) -> str:
    """Return namespace and version of the entry *name*."""
    return name.rpartition("/")[0]


def listed_entries(model: Model) -> tuple[KeptEntries, ...]:
    """Return the entries that the list in a model file names.

    The result is empty if the file has no list, or a damaged one.

    The file is untrusted: numbers and names are for display only.
    """
    places = {} if model.entries is None else model.entries.places
    for name, (place, length) in places.items():
        if name.startswith(f"{_NAME}-") and length <= _MOST_BYTES:
            content = model.content[place : place + length].tobytes()
            try:
                return from_json(tuple[KeptEntries, ...], json.loads(content))
            except (ValueError, RecursionError):  # not JSON, or of another form
                return ()
    return ()


def with_list(
    entries: dict[str, bytes], before: Iterable[KeptEntries], new: Collection[KeptEntries]
) -> dict[str, bytes]:
    """Return entries with a list of them.

    Args:
        entries: content of each entry of the file that is written, by name.
        before: the list of the file that was read; what is no more among the entries is left out.
        new: entries that were made now.
    """
    stores = {store_of(name) for name in entries}
    made = {(each.delegate, each.threads) for each in new}
    rows = [
        each
        for each in before
        if (each.delegate, each.threads) not in made and stores.issuperset(each.stores)
    ]
    rows += [each for each in new if each.names]
    rows.sort(key=lambda each: (each.delegate, each.threads or 0))
    content = json.dumps([each.to_json() for each in rows]).encode()
    kept = {name: each for name, each in entries.items() if not name.startswith(f"{_NAME}-")}
    return {**kept, f"{_NAME}-{hex_digest(content)}": content}
