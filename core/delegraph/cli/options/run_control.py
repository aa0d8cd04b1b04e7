"""Options for the number of runs; the command gets a ``RunControl``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.options.kinds import (
    Command,
    joined,
    number_option,
    seconds_option,
    switch_option,
    with_options_added,
)

if TYPE_CHECKING:
    from delegraph.tools.benchmarking.run_control import RunControl

CONTROL_OPTIONS = (
    *("runs", "min_seconds", "max_seconds", "warmup_runs", "warmup_seconds"),
    *("delay", "frequency", "dry_run"),
)
"""Names of these options in click."""


def _duration(name: str, text: str, default: float, metavar: str | None = None) -> Any:
    """Return a decorator that adds an option for 0 or more seconds."""
    return click.option(
        name,
        type=click.FloatRange(0),
        default=default,
        show_default=True,
        metavar=metavar,
        help=text,
    )


_OPTIONS = (
    number_option("--runs", "Least number of measured runs.", default=50),
    _duration("--min-seconds", "Least duration of all runs; 0: --runs only.", 1.0),
    _duration("--max-seconds", "Time after which no run begins.", 150.0),
    number_option("--warmup-runs", "Least number of runs before measuring.", default=1, least=0),
    _duration("--warmup-seconds", "Least duration of these runs.", 0.5),
    _duration("--delay", "Pause after each run.", 0.0, "SECONDS"),
    seconds_option(
        "--frequency", "Runs to start a second; late runs are caught up.", metavar="RUNS"
    ),
    switch_option("--dry-run", "Load and allocate, and do not run."),
)


def run_control_options(command: Command) -> Command:
    """Add options for the number of runs; the command gets a ``RunControl`` as *control*."""
    return with_options_added(joined(command, CONTROL_OPTIONS, "control", _control), _OPTIONS)


def _control(*, dry_run: bool, **given: Any) -> RunControl:
    from delegraph.tools.benchmarking.run_control import DRY_RUN, RunControl

    return DRY_RUN if dry_run else RunControl(**given)
