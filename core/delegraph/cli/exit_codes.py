"""Exit codes of the command line, and the errors that lead to each."""

from __future__ import annotations

from delegraph.errors import (
    ArgumentError,
    DelegateError,
    DelegraphError,
    PlacementError,
    PluginError,
    PluginOptionError,
    TimeLimitError,
    blamed,
)

OK = 0
CHECK_FAILED = 1
USAGE = 2
PLUGIN_TROUBLE = 3
TIME_IS_UP = 4
INTERRUPTED = 130
NOBODY_READS = 141  # the same as for a process that SIGPIPE ends

CODES = {
    OK: "all is well",
    CHECK_FAILED: "a check failed: bad model, failed node, nodes not placed as requested",
    USAGE: "usage: a wrong argument or option, or a missing file",
    PLUGIN_TROUBLE: "plugin trouble: a delegate is missing, broken or failed",
    TIME_IS_UP: "--time-limit was exceeded",
}
"""Mapping from each exit code to its meaning, as the help shows it."""


def exit_code_of(error: Exception) -> int | None:
    """Return the exit code for an expected error; None for an unexpected one."""
    if isinstance(error, TimeLimitError):
        return TIME_IS_UP
    if isinstance(error, PlacementError):
        return CHECK_FAILED
    if isinstance(error, PluginOptionError):  # what the user has written after the name
        return USAGE
    if isinstance(error, PluginError | DelegateError) or blamed(error):
        return PLUGIN_TROUBLE
    if isinstance(error, ArgumentError):
        return USAGE
    return CHECK_FAILED if isinstance(error, DelegraphError) else None
