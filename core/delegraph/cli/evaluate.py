"""``delegraph evaluate``: how accurate a model is; each task is a subcommand of its own module."""

from __future__ import annotations

from importlib import import_module

import click

from delegraph.cli.options import diagnosis_options

TASKS = ("classification", "detection")
"""In the order of ``--help``; each is ``command`` in the module ``evaluate_NAME``."""


class TaskGroup(click.Group):
    """Imports a task's module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the tasks."""
        return list(TASKS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a task's command; None when there is none of that name."""
        if cmd_name not in TASKS:
            return None
        found: click.Command = import_module(f"delegraph.cli.evaluate_{cmd_name}").command
        return found


@click.group("evaluate", cls=TaskGroup)
@diagnosis_options
def command() -> None:
    """Evaluate how accurate a model is, with one set-up or more."""
