"""Options for the number of runs; the command gets a ``RunControl``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from delegraph.cli.options.arguments import with_options_added

Command = TypeVar("Command", bound=Callable[..., Any])

CONTROL_OPTIONS = (
    *("runs", "min_seconds", "max_seconds", "warmup_runs", "warmup_seconds"),
    *("delay", "frequency", "dry_run"),
)
"""Names of these options in click."""

_SECONDS = click.FloatRange(0)


def run_control_options(command: Command) -> Command:
    """Add options for the number of runs; the command gets a ``RunControl`` as *control*."""
    options = [
        click.option(
            "--runs",
            type=click.IntRange(1),
            default=50,
            show_default=True,
            help="Least number of measured runs.",
        ),
        click.option(
            "--min-seconds",
            type=_SECONDS,
            default=1.0,
            show_default=True,
            help="Least duration of all runs; 0: --runs only.",
        ),
        click.option(
            "--max-seconds",
            type=_SECONDS,
            default=150.0,
            show_default=True,
            help="Time after which no run begins.",
        ),
        click.option(
            "--warmup-runs",
            type=click.IntRange(0),
            default=1,
            show_default=True,
            help="Least number of runs before measuring.",
        ),
        click.option(
            "--warmup-seconds",
            type=_SECONDS,
            default=0.5,
            show_default=True,
            help="Least duration of these runs.",
        ),
        click.option(
            "--delay",
            type=_SECONDS,
            default=0.0,
            show_default=True,
            metavar="SECONDS",
            help="Pause after each run.",
        ),
        click.option(
            "--frequency",
            type=click.FloatRange(0, min_open=True),
            metavar="RUNS",
            help="Runs to start a second; late runs are caught up.",
        ),
        click.option("--dry-run", is_flag=True, help="Load and allocate, and do not run."),
    ]
    return with_options_added(_taking_control(command), options)


def _taking_control(command: Command) -> Command:
    @functools.wraps(command)
    def run(*arguments: Any, dry_run: bool, **options: Any) -> Any:
        from delegraph.tools.benchmarking.run_control import DRY_RUN, RunControl

        given = {name: options.pop(name) for name in CONTROL_OPTIONS if name != "dry_run"}
        control = DRY_RUN if dry_run else RunControl(**given)
        return command(*arguments, control=control, **options)

    return cast(Command, run)
