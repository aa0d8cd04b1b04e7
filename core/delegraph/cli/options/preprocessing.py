"""Options for preprocessing pictures: a preset, and changes to it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from delegraph.cli.options.arguments import with_options_added

if TYPE_CHECKING:
    from delegraph.tools.evaluation.preprocessing import Preprocessing

Command = TypeVar("Command", bound=Callable[..., Any])

PRESETS = ("tflite", "slim", "keras", "keras-caffe", "torchvision", "timm")
"""Names of the presets in ``delegraph.tools.evaluation.presets``, not imported for help."""

FILTERS = ("tflite", "half-pixel", "nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")

_OPTIONS = {
    "crop": "--crop",
    "fraction": "--crop-fraction",
    "resize": "--resize",
    "mean": "--mean",
    "std": "--std",
    "channels": "--channels",
    "integers": "--integers",
    "upright": "--upright",
}


class Numbers(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic since 8.2
    """Option type: one number, or one per colour: ``127.5`` or ``123.7,116.3,103.5``."""

    name = "NUMBERS"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, ...]:
        """Return the numbers in text such as ``123.7,116.3,103.5``."""
        try:
            return tuple(float(word) for word in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r}: expected a number, or three with commas between", param, ctx)


def preprocessing_options(command: Command) -> Command:
    """Add ``--preset`` and options that change it; the command gets *preprocessing*."""
    return _taking_preprocessing(command, _OPTIONS)


def whole_picture_options(command: Command) -> Command:
    """Add the options of :func:`preprocessing_options` except those for cropping."""
    return _taking_preprocessing(command, _OPTIONS.keys() - {"crop", "fraction"})


def _taking_preprocessing(command: Command, names: Iterable[str]) -> Command:
    """Add ``--preset`` and an option for each of the attributes *names*."""
    chosen = [name for name in _OPTIONS if name in set(names)]

    @functools.wraps(command)
    def run(*arguments: Any, preset: str, **options: Any) -> Any:
        changes = {name: options.pop(name) for name in chosen}
        given = {name: value for name, value in changes.items() if value is not None}
        return command(*arguments, preprocessing=_changed(preset, given), **options)

    return _with_options(cast(Command, run), ["preset", *chosen])


def _changed(name: str, changes: Mapping[str, Any]) -> Preprocessing:
    from delegraph.tools.evaluation.presets import preset

    chosen = preset(name)
    if not changes:
        return chosen
    words = ", ".join(_OPTIONS[change] for change in changes)
    own = replace(chosen, name=f"{name} with {words}", **changes)
    return replace(own, reason=own.steps)


def _with_options(command: Command, names: Sequence[str]) -> Command:
    options = {
        "preset": click.option(
            "--preset",
            type=click.Choice(PRESETS),
            default="tflite",
            show_default=True,
            metavar="PRESET",
            help="Steps of tflite, slim, keras, timm, ...",
        ),
        "crop": click.option(
            "--crop",
            type=click.Choice(["square", "rectangle", "after", "none"]),
            help="Cut it.",
        ),
        "fraction": click.option(
            "--crop-fraction",
            "fraction",
            type=click.FloatRange(0, 1, min_open=True),
            help="Share of the sides that is kept.",
        ),
        "resize": click.option(
            "--resize",
            type=click.Choice(FILTERS),
            metavar="FILTER",
            help="Filter, such as bilinear.  [default: the preset's]",
        ),
        "mean": click.option(
            "--mean", type=Numbers(), help="Subtracted from float inputs, in byte units."
        ),
        "std": click.option("--std", type=Numbers(), help="Divisor of float inputs, after --mean."),
        "channels": click.option(
            "--channels", type=click.Choice(["rgb", "bgr"]), help="Order of the colours."
        ),
        "integers": click.option(
            "--integers",
            type=click.Choice(["bytes", "quantized"]),
            help="Values of integer inputs.",
        ),
        "upright": click.option(
            "--upright/--not-upright",
            "upright",
            default=None,
            help="Turn pictures as their EXIF data says.",
        ),
    }
    return with_options_added(command, [options[name] for name in names])
