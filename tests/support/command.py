"""Types of the fixtures that run the ``delegraph`` command, and a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable

from delegraph.testing import CommandResult

Command = Callable[..., CommandResult]
Refused = Callable[..., str]


class Terminal(io.StringIO):
    """Text stream that is a terminal."""

    def isatty(self) -> bool:
        return True
