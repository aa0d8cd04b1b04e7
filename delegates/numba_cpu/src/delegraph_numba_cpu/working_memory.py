"""Memory that programs need while they run: one buffer for all programs of a subgraph."""

from __future__ import annotations

from typing import Protocol
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from delegraph.memory import aligned_buffer


class User(Protocol):
    """Who works in the buffer."""

    def place(self, buffer: NDArray[np.uint8]) -> None:
        """Work in this buffer from now on; what the old one held is lost."""


class WorkingMemory:
    """A buffer whose users take turns: what it holds is lost when one of them is done.

    It grows when a user needs more than all before, and stays that large.
    """

    def __init__(self) -> None:
        self._buffer = aligned_buffer(0)
        self._users: WeakSet[User] = WeakSet()

    @property
    def size(self) -> int:
        """Bytes."""
        return self._buffer.nbytes

    def serve(self, user: User, size: int) -> None:
        """Give a new user a place of at least *size* bytes; the others follow if it has moved."""
        self._users.add(user)
        if size <= self.size:
            user.place(self._buffer)
            return
        self._buffer = aligned_buffer(size)
        for each in self._users:
            each.place(self._buffer)
