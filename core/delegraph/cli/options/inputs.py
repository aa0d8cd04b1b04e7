"""Options for the inputs of a model; the command gets an ``InputRequest``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.options.kinds import Command, choice_option, joined, with_options_added
from delegraph.quantities import plural

if TYPE_CHECKING:
    from delegraph.tools.requested_inputs import InputRequest


input_option = click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]VALUE",
    help="A file, text, numbers, zeros or random; repeatable.",
)
"""Decorator that adds ``--input``, which may be repeated, as *inputs*."""

sample_rate_option = click.option(
    "--sample-rate",
    type=click.IntRange(1_000, 768_000),
    metavar="HERTZ",
    help="Rate of the model's sounds.  [default: the metadata's, or 16000]",
)
"""Decorator that adds ``--sample-rate``, the sample rate of sounds in hertz."""

seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of random inputs."
)
"""Decorator that adds ``--seed``, the seed of random inputs."""

inner_option = choice_option(
    "--inner", ["boundaries", "exposed", "alone"], "Tensors in partitions.", show_default="alone"
)
"""Decorator that adds ``--inner``: which tensors of partitions a comparison of layers has."""


def input_request_options(distribution: str) -> Callable[[Command], Command]:
    """Add all options about inputs; the command gets an ``InputRequest`` as *inputs*.

    Args:
        distribution: name of the default distribution of random values.
    """
    ways = ["run", "benchmark", "inference_diff"]
    options = [
        input_option,
        click.option(
            "--input-shape",
            "shapes",
            multiple=True,
            callback=_named_numbers,
            metavar="[NAME=]N,N,N",
            help="Give an input another shape; repeatable.",
        ),
        choice_option("--distribution", ways, "Random values.", default=distribution),
        click.option(
            "--input-range",
            "ranges",
            multiple=True,
            callback=_named_ranges,
            metavar="[NAME=]LOW,HIGH",
            help="Range of random values, for --distribution benchmark.",
        ),
        seed_option,
        sample_rate_option,
    ]
    names = ("inputs", "shapes", "distribution", "seed", "ranges", "sample_rate")
    return lambda command: with_options_added(joined(command, names, "inputs", _request), options)


def _request(inputs: Sequence[str], **more: Any) -> InputRequest:
    from delegraph.tools.requested_inputs import InputRequest

    return InputRequest(inputs, **more)


def _named_numbers(
    ctx: click.Context, parameter: click.Parameter, words: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Split ``[NAME=]NUMBER,NUMBER,...`` at the last ``=``, because a name may contain ``=``."""
    found: dict[str, tuple[int, ...]] = {}
    for word in words:
        name, _, numbers = word.rpartition("=")
        try:
            values = tuple(int(number) for number in numbers.split(","))
        except ValueError:
            raise click.BadParameter(f"{word!r}, expected {parameter.metavar}") from None
        if name in found:
            raise click.BadParameter(f"{word!r} is a second one for the same input")
        found[name] = values
    return found


def _named_ranges(
    ctx: click.Context, parameter: click.Parameter, words: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    found = _named_numbers(ctx, parameter, words)
    for name, values in found.items():
        if len(values) != 2:
            of = f" for {name!r}" if name else ""
            raise click.BadParameter(
                f"{plural(len(values), 'number')}{of}, expected {parameter.metavar}"
            )
    return found
