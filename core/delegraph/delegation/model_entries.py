"""Content that a delegate stores in the model file itself, in place of the cache.

``delegraph compile`` writes the entries; :mod:`delegraph.graph.model_entries` defines their place
in the file. The file is untrusted, so a delegate must check an entry completely before using it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from delegraph.delegation.hashing import hex_digest
from delegraph.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from delegraph.graph.model import Model

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


_READ: ContextVar[set[str] | None] = ContextVar("delegraph_entries_read", default=None)


@contextmanager
def entries_read() -> Iterator[set[str]]:
    """Context that yields a set of names, which grows while the block runs.

    It gets the name of each entry that a delegate finds in a model file.
    """
    names: set[str] = set()
    token = _READ.set(names)
    try:
        yield names
    finally:
        _READ.reset(token)


class ModelEntries:
    """Data that one delegate stores at the end of a model file, by version and key.

    Args:
        model: the model.
        namespace: the delegate's name; letters, digits, ``.``, ``_``, ``-``.
        written: mapping that collects new entries while the model is compiled ahead of time;
            otherwise None.

    Attributes:
        is_writing: whether the model is being compiled, so that :meth:`keep` writes to the file.

    Raises:
        ArgumentError: the namespace has forbidden characters or is too long.
    """

    def __init__(
        self, model: Model, namespace: str, written: MutableMapping[str, bytes] | None
    ) -> None:
        self._namespace = _checked("namespace", namespace)
        self._content, self._written = model.content, written
        places = {} if model.entries is None else model.entries.places
        own = (name for name in places if name.startswith(f"{namespace}/"))
        self._places = {name.rpartition("-")[0]: (name, *places[name]) for name in own}
        self.is_writing = written is not None

    def __bool__(self) -> bool:
        """Whether the file has entries of the delegate, or entries may be written."""
        return self.is_writing or bool(self.versions)

    @property
    def versions(self) -> frozenset[str]:
        """Versions of the delegate's entries in the file."""
        return frozenset(name.split("/")[1] for name in self._places if name.count("/") == 2)

    def map(self, version: str, key: str) -> memoryview | None:
        """Return the content for *key* as read-only memory aligned to 64 bytes; None if missing.

        If possible, the memory is the mapped file, which is read when it is used. The caller must
        check the content completely, since anybody may have written it. While a model is compiled,
        the result is None.

        Args:
            version: versions of the delegate and its engine, as text.
            key: text of all other things that the content depends on.
        """
        _, content = self._found(version, key)
        if content is None:
            return None
        from delegraph.graph.model_entries import ALIGNMENT  # here: few files have entries

        if content.__array_interface__["data"][0] % ALIGNMENT:
            from delegraph.memory import aligned_buffer  # lazy import: for models in memory

            copied = aligned_buffer(len(content))
            copied[:] = content
            return copied.data.toreadonly()
        return content.data

    def read(self, version: str, key: str) -> bytes | None:
        """Return the content for *key*; None if it is missing or damaged.

        The check finds damage but no attack, since an attacker can write a matching digest.

        Args:
            version: versions of the delegate and its engine, as text.
            key: text of all other things that the content depends on.
        """
        name, found = self._found(version, key)
        content = None if found is None else found.tobytes()
        return content if content is not None and name.endswith(hex_digest(content)) else None

    def keep(self, version: str, key: str, content: bytes) -> bool:
        """Add content to the file that is being written; return whether a file is being written.

        Args:
            version: text of everything that the content depends on besides *key*, such as the
                versions of the delegate and its engine. It must be the same on every machine: up to
                100 letters, digits, ``.``, ``_``, ``-``.
            key: text of all that the content depends on, with ``DelegateContext.model_digest``.
            content: the content.
        """
        if self._written is None:
            return False
        self._written[f"{self._start(version, key)}-{hex_digest(content)}"] = content
        return True

    def _found(self, version: str, key: str) -> tuple[str, NDArray[np.uint8] | None]:
        """Return name and bytes of the entry for *version* and *key*; bytes are None if missing."""
        start = self._start(version, key)
        if self.is_writing or start not in self._places:
            return "", None
        name, place, length = self._places[start]
        noted = _READ.get()
        if noted is not None:
            noted.add(name)
        return name, self._content[place : place + length]

    def _start(self, version: str, key: str) -> str:
        """Return the part of an entry's name that depends on version and key.

        Args:
            version: versions of the delegate and its engine, as text.
            key: text of all other things that the content depends on.
        """
        digest = hex_digest(key.encode())[:32]
        return f"{self._namespace}/{_checked('version', version)}/{digest}"


def _checked(what: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ArgumentError(
            f"the {what} of entries in a model is {name!r}, expected up to 100 letters, digits, "
            "'.', '_' or '-', the first of them a letter or digit"
        )
    return name
