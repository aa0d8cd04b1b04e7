"""Types of the fixtures that run the ``delegraph`` command."""

from __future__ import annotations

from collections.abc import Callable

from delegraph.testing import CommandResult

Command = Callable[..., CommandResult]
Refused = Callable[..., str]
