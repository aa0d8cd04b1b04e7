"""Options for converting a picture to an input, for ``run`` and ``predict``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from delegraph.cli.options.arguments import with_options_added
from delegraph.cli.options.preprocessing import Numbers

Command = TypeVar("Command", bound=Callable[..., Any])

NAMES = ("crop", "fraction", "mean", "std", "layout", "channels")
"""Names of the options in Python."""


def picture_options(command: Command) -> Command:
    """Add the options about pictures; the command gets ``PictureOptions`` as *picture*."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        from delegraph.tools.pictures import PictureOptions

        values = {name: options.pop(name) for name in NAMES}
        given = {name: value for name, value in values.items() if value is not None}
        return command(*arguments, picture=PictureOptions(**given), **options)

    return with_options_added(
        cast(Command, run),
        [
            click.option(
                "--mean",
                type=Numbers(),
                help="Subtracted from bytes.  [default: the metadata's; else 127.5]",
            ),
            click.option(
                "--std",
                type=Numbers(),
                help="Divides the differences.  [default: the metadata's; else 127.5]",
            ),
            click.option(
                "--crop",
                type=click.Choice(["none", "square"]),
                help="Cut out the middle square first.",
            ),
            click.option(
                "--crop-fraction",
                "fraction",
                type=click.FloatRange(0, 1, min_open=True),
                help="Side of the square over the shorter side.  [default: 1]",
            ),
            click.option(
                "--layout",
                type=click.Choice(["nhwc", "nchw"]),
                help="Order of dimensions; by default the shape's.",
            ),
            click.option(
                "--channels",
                type=click.Choice(["rgb", "bgr"]),
                help="Order of the colours; by default rgb.",
            ),
        ],
    )
