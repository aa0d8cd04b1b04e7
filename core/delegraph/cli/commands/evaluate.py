"""``delegraph evaluate``: accuracy of a model; each task is a subcommand in its own module."""

from __future__ import annotations

import os
from importlib import import_module

import click

from delegraph.cli.failure import speak_of_options
from delegraph.cli.options.arguments import diagnosis_options
from delegraph.cli.options.sections import SummarizedGroup
from delegraph.errors import DelegraphError, did_you_mean

TASKS = ("classification", "detection", "custom")
"""Names of the tasks in the order of ``--help``; each is a module ``evaluate_NAME``."""


class TaskGroup(SummarizedGroup):
    """Command group of tasks, imported on demand; ``--metric`` without a task means ``custom``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert ``custom`` before arguments that have ``--metric`` but no task."""
        if args and args[0] not in TASKS and any(_is_metric(word) for word in args):
            args = ["custom", *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the task at the start of *args*; the error lists the tasks."""
        known = args[0] in TASKS or args[0].startswith("-")
        if not known and not ctx.resilient_parsing:
            tasks = f"{', '.join(TASKS)}; or --metric PACKAGE:FUNCTION"
            if os.path.exists(args[0]):
                raise click.UsageError(f"the task comes before {args[0]!r}, one of: {tasks}")
            close = did_you_mean(args[0], TASKS)
            raise click.UsageError(f"no task {args[0]!r}{close}, expected one of: {tasks}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the task; its errors name command-line options, not Python arguments."""
        try:
            return super().invoke(ctx)
        except DelegraphError as error:
            task = self.get_command(ctx, ctx.invoked_subcommand or "")
            if task is not None:
                speak_of_options(error, task)
            raise

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the tasks."""
        return list(TASKS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a task; None if the task does not exist."""
        if cmd_name not in TASKS:
            return None
        found: click.Command = import_module(f"delegraph.cli.commands.evaluate_{cmd_name}").command
        return found


@click.group("evaluate", cls=TaskGroup)
@diagnosis_options
def command() -> None:
    """Evaluate how accurate a model is, with one set-up or more.

    'delegraph evaluate --metric PACKAGE:FUNCTION MODEL DATA' is the task 'custom'.
    """


def _is_metric(word: str) -> bool:
    return word.partition("=")[0] == "--metric"
