"""Options for preprocessing pictures: a preset, and changes to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.options.kinds import Command, choice_option, joined, with_options_added

if TYPE_CHECKING:
    from delegraph.tools.evaluation.preprocessing import Preprocessing

PRESETS = ("tflite", "slim", "keras", "keras-caffe", "torchvision", "timm")
"""Names of the presets in ``delegraph.tools.evaluation.presets``, not imported for help."""

FILTERS = ("tflite", "half-pixel", "nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")


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
    options = [_PRESET, *_CROP, *_CHANGES]
    return with_options_added(joined(command, _NAMES, "preprocessing", _changed), options)


def whole_picture_options(command: Command) -> Command:
    """Add the options of :func:`preprocessing_options` except those for cropping."""
    names = [name for name in _NAMES if name not in ("crop", "fraction")]
    return with_options_added(
        joined(command, names, "preprocessing", _changed), [_PRESET, *_CHANGES]
    )


def _changed(preset: str, **values: Any) -> Preprocessing:
    """Return a preset, changed by the options that have a value."""
    from delegraph.tools.evaluation import presets

    chosen = presets.preset(preset)
    changes = {name: value for name, value in values.items() if value is not None}
    if not changes:
        return chosen
    words = ", ".join(f"--{'crop-fraction' if name == 'fraction' else name}" for name in changes)
    own = replace(chosen, name=f"{preset} with {words}", **changes)
    return replace(own, reason=own.steps)


_NAMES = ("preset", "crop", "fraction", "resize", "mean", "std", "channels", "integers", "upright")
"""Names of all options in Python."""

_PRESET = choice_option(
    "--preset",
    PRESETS,
    "Steps of tflite, slim, keras, timm, ...",
    default="tflite",
    metavar="PRESET",
)

_CROP = (
    choice_option("--crop", ["square", "rectangle", "after", "none"], "Cut it."),
    click.option(
        "--crop-fraction",
        "fraction",
        type=click.FloatRange(0, 1, min_open=True),
        help="Share of the sides that is kept.",
    ),
)

_CHANGES = (
    choice_option(
        "--resize",
        FILTERS,
        "Filter, such as bilinear.  [default: the preset's]",
        metavar="FILTER",
    ),
    click.option("--mean", type=Numbers(), help="Subtracted from float inputs, in byte units."),
    click.option("--std", type=Numbers(), help="Divisor of float inputs, after --mean."),
    choice_option("--channels", ["rgb", "bgr"], "Order of the colours."),
    choice_option("--integers", ["bytes", "quantized"], "Values of integer inputs."),
    click.option(
        "--upright/--not-upright",
        "upright",
        default=None,
        help="Turn pictures as their EXIF data says.",
    ),
)
