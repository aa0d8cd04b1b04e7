"""Support for ``with``: an interpreter is closed at the end of the block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self  # type: ignore[attr-defined, unused-ignore]  # 3.11; never run on 3.10


class ClosedByWith(ABC):
    """A base of interpreters: ``with Interpreter(...) as interpreter``."""

    @abstractmethod
    def close(self) -> None:
        """Release the interpreter's memory and delegates."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
