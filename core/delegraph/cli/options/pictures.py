"""Options for converting a picture to an input, for ``run`` and ``predict``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.options.kinds import Command, choice_option, joined, with_options_added
from delegraph.cli.options.preprocessing import Numbers

if TYPE_CHECKING:
    from delegraph.tools.pictures import PictureOptions

NAMES = ("crop", "fraction", "mean", "std", "layout", "channels")
"""Names of the options in Python."""


def picture_options(command: Command) -> Command:
    """Add the options about pictures; the command gets ``PictureOptions`` as *picture*."""
    mean = "Subtracted from bytes.  [default: the metadata's; else 127.5]"
    std = "Divides the differences.  [default: the metadata's; else 127.5]"
    layout = "Order of dimensions; by default the shape's."
    options = [
        click.option("--mean", type=Numbers(), help=mean),
        click.option("--std", type=Numbers(), help=std),
        choice_option("--crop", ["none", "square"], "Cut out the middle square first."),
        click.option(
            "--crop-fraction",
            "fraction",
            type=click.FloatRange(0, 1, min_open=True),
            help="Side of the square over the shorter side.  [default: 1]",
        ),
        choice_option("--layout", ["nhwc", "nchw"], layout),
        choice_option("--channels", ["rgb", "bgr"], "Order of the colours; by default rgb."),
    ]
    return with_options_added(joined(command, NAMES, "picture", _picture), options)


def _picture(**values: Any) -> PictureOptions:
    from delegraph.tools.pictures import PictureOptions

    return PictureOptions(**{name: value for name, value in values.items() if value is not None})
