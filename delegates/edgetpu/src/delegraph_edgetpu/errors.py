"""Every exception of this package."""

from __future__ import annotations

from delegraph.errors import MalformedModelError, UnsupportedModelError


class ExecutableError(MalformedModelError):
    """The custom operator's options or the executable in them are damaged."""


class CannotCompile(UnsupportedModelError):
    """A sound model that has nothing for the Edge TPU; the message names the first obstacle."""
