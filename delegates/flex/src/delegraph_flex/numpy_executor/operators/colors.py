"""Operators that change hue, saturation or contrast of images.

Source:
    core/kernels/image/colorspace_op.h, adjust_hue_op.cc, adjust_saturation_op.cc,
    adjust_contrast_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.indices import check_scalar
from delegraph_flex.numpy_executor.registry import FLOATS, operator, step_of

Floats = NDArray[Any]
_FLOAT32 = (DataType.FLOAT32,)


@operator("RGBToHSV", "HSVToRGB", types=FLOATS)
def convert_colors(node: FlexNode) -> Step:
    """Return a function that converts colours to hue, saturation and value in [0, 1], or back."""
    type = node.type("T", DataType.FLOAT32)
    dtype, compute = type.dtype, type.wide
    convert = _hsv if node.op == "RGBToHSV" else _rgb

    def run(x: Floats) -> Floats:
        _require_colors(x, 1)
        return convert(x.astype(compute, copy=False)).astype(dtype, copy=False)

    return run


def _require_colors(x: Floats, rank: int) -> None:
    if x.ndim < rank or x.shape[-1] != 3:
        raise ValueError(f"image has shape {list(x.shape)}, expected three colours last")


def _hsv(x: Floats) -> Floats:
    value, least = x.max(axis=-1), x.min(axis=-1)
    span = value - least
    saturation = np.divide(span, value, out=np.zeros_like(value), where=value > 0)
    sixth = 1 / (6 * np.where(span > 0, span, 1))
    third = x.dtype.type(1 / 3)
    hue = _hue(x, value, sixth, third)
    hue = np.where(hue < 0, hue + 1, hue)
    return np.stack([hue, saturation, value], axis=-1)


def _hue(x: Floats, value: Floats, unit: Floats, third: Any) -> Floats:
    """Return the hue of *x* as an angle from red; *third* is a third of the circle.

    *value* is the largest channel, and *unit* the angle for each unit of difference between
    channels. The result is from -1/2 to 5/2 times *third*.
    """
    red, green, blue = np.moveaxis(x, -1, 0)
    after_green = unit * (blue - red) + third
    after_blue = unit * (red - green) + (third + third)
    later = np.where(green == value, after_green, after_blue)
    hue: Floats = np.where(red == value, unit * (green - blue), later)
    return hue


def _rgb(x: Floats) -> Floats:
    hue, saturation, value = np.moveaxis(x, -1, 0)
    grey = 1 - saturation
    return np.stack([(grey + saturation * share) * value for share in _shares(hue * 6)], axis=-1)


def _shares(sextant: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the shares of red, green and blue in the hue *sextant*, in [0, 1].

    The circle has six units.
    """
    return (
        np.clip(np.abs(sextant - 3) - 1, 0, 1),
        np.clip(2 - np.abs(sextant - 2), 0, 1),
        np.clip(2 - np.abs(sextant - 4), 0, 1),
    )


def _mixed(sextant: Floats, least: Floats, span: Floats) -> Floats:
    return np.stack([least + share * span for share in _shares(sextant)], axis=-1)


@step_of("AdjustSaturation", types=_FLOAT32)
def adjust_saturation(x: Floats, scale: Any) -> Floats:
    """Return *x* with the saturation of colours multiplied by *scale*, and clamped to 1."""
    _require_colors(x, 3)
    check_scalar(scale, "scale")
    hue, saturation, value = np.moveaxis(_hsv(x), -1, 0)
    span = np.clip(saturation * np.float32(scale), 0, 1) * value
    return _mixed(hue * 6, value - span, span)


@step_of("AdjustHue", types=_FLOAT32)
def adjust_hue(x: Floats, delta: Any) -> Floats:
    """Return *x* with hues rotated on the colour circle by *delta*; 1 is a whole turn."""
    _require_colors(x, 3)
    check_scalar(delta, "delta")
    least, most = x.min(axis=-1), x.max(axis=-1)
    span = most - least
    sextant = _hue(x, most, 1 / np.where(span > 0, span, 1), np.float32(2))
    return _mixed(np.mod(sextant + np.float32(delta) * 6, np.float32(6)), least, span)


@step_of("AdjustContrastv2", types=_FLOAT32)
def adjust_contrast(x: Floats, factor: Any) -> Floats:
    """Return *x* with its differences from the mean, per channel and image, multiplied."""
    check_scalar(factor, "contrast factor")
    if x.ndim < 3:
        raise ValueError(f"image has shape {list(x.shape)}, expected 3 dimensions or more")
    if not x.size:
        return x
    mean = x.mean(axis=(-3, -2), keepdims=True, dtype=np.float64).astype(np.float32)
    y: Floats = (x - mean) * np.float32(factor) + mean
    return y
