"""All exceptions of this package."""

from __future__ import annotations

from delegraph.errors import (
    DelegraphError,
    MalformedModelError,
    OperatorError,
    UnsupportedModelError,
)


class ExecutableError(MalformedModelError):
    """Error: the custom operator's options, or the executable in them, are damaged."""


class NeedsDevice(OperatorError):
    """Error: the executable is the real compiler's, which only a real device can run."""


class CannotCompile(UnsupportedModelError):
    """Error: a valid model has no part for the Edge TPU; the message names the first obstacle."""


class PipelineError(DelegraphError, RuntimeError):
    """Error: a segment of a pipeline failed; the cause is chained.

    Attributes:
        segment: number of the segment, from 0.
    """

    def __init__(self, message: str, *, segment: int) -> None:
        super().__init__(message)
        self.segment = segment
