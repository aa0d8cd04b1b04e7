"""The type of what runs the ``delegraph`` command in tests."""

from __future__ import annotations

from collections.abc import Callable

from delegraph.testing import CommandResult

Command = Callable[..., CommandResult]
