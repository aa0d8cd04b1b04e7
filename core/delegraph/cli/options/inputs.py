"""Options for the inputs of a model; the command gets an ``InputRequest``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import click

from delegraph.quantities import plural

Command = TypeVar("Command", bound=Callable[..., Any])


def input_option(command: Command) -> Command:
    """Add ``--input``, which may be repeated, as *inputs*."""
    return click.option(
        "-i",
        "--input",
        "inputs",
        multiple=True,
        metavar="[NAME=]VALUE",
        help="A file, text, numbers, zeros or random; repeatable.",
    )(command)


def sample_rate_option(command: Command) -> Command:
    """Add ``--sample-rate``, the sample rate of sounds in hertz."""
    return click.option(
        "--sample-rate",
        type=click.IntRange(1_000, 768_000),
        metavar="HERTZ",
        help="Rate of the model's sounds.  [default: the metadata's, or 16000]",
    )(command)


def seed_option(command: Command) -> Command:
    """Add ``--seed``, the seed of random inputs."""
    return click.option(
        "--seed", type=int, default=0, show_default=True, help="Seed of random inputs."
    )(command)


def input_request_options(distribution: str) -> Callable[[Command], Command]:
    """Add all options about inputs; the command gets an ``InputRequest`` as *inputs*.

    Args:
        distribution: name of the default distribution of random values.
    """

    def add(command: Command) -> Command:
        shape = click.option(
            "--input-shape",
            "shapes",
            multiple=True,
            callback=_named_numbers,
            metavar="[NAME=]N,N,N",
            help="Give an input another shape; repeatable.",
        )
        spread = click.option(
            "--distribution",
            type=click.Choice(["run", "benchmark", "inference_diff"]),
            default=distribution,
            show_default=True,
            help="Random values.",
        )
        between = click.option(
            "--input-range",
            "ranges",
            multiple=True,
            callback=_named_ranges,
            metavar="[NAME=]LOW,HIGH",
            help="Range of random values, for --distribution benchmark.",
        )
        last = seed_option(sample_rate_option(_taking_request(command)))
        return input_option(shape(spread(between(last))))

    return add


def _taking_request(command: Command) -> Command:
    @functools.wraps(command)
    def run(*arguments: Any, inputs: Sequence[str], **options: Any) -> Any:
        from delegraph.tools.requested_inputs import InputRequest

        names = ("shapes", "distribution", "seed", "ranges", "sample_rate")
        request = InputRequest(inputs, **{name: options.pop(name) for name in names})
        return command(*arguments, inputs=request, **options)

    return cast(Command, run)


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
