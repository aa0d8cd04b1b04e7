"""Random operands of convolutions, scaled so that results use the output's whole range.

Rounding differs between kernels only for rare values. So there are many operands, generated from
seeds, and output zero points avoid clamping of negative results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from delegraph.testing.one_op import TensorDef, constant, tensor
from delegraph.testing.operator_case import Fed, fed

WEIGHT_SCALE, INPUT_SCALE = 0.0151, 0.0231


@dataclass(frozen=True)
class Kind:
    """Element types of a convolution: activations, weights, bias, and the weights' scales."""

    x: str
    weight: str
    bias: str
    per_channel: bool = False
    weight_zero_point: int = 0

    @property
    def is_float(self) -> bool:
        """Whether activations are FLOAT32."""
        return self.x == "FLOAT32"


FLOAT = Kind("FLOAT32", "FLOAT32", "FLOAT32")
UINT8 = Kind("UINT8", "UINT8", "INT32", weight_zero_point=121)
INT8 = Kind("INT8", "INT8", "INT32")
INT8_CHANNELS = Kind("INT8", "INT8", "INT32", per_channel=True)
INT4_CHANNELS = Kind("INT8", "INT4", "INT32", per_channel=True)
INT16_CHANNELS = Kind("INT16", "INT8", "INT64", per_channel=True)
INT16_SHORT_BIAS = Kind("INT16", "INT8", "INT32", per_channel=True)
HYBRID = Kind("FLOAT32", "INT8", "FLOAT32")
HYBRID_CHANNELS = Kind("FLOAT32", "INT8", "FLOAT32", per_channel=True)
HYBRID_INT4 = Kind("FLOAT32", "INT4", "FLOAT32")

_RANGES = {"UINT8": (0, 255), "INT8": (-128, 127), "INT16": (-32768, 32767)}
# Converters never store -128; the official hybrid kernels mistake it where they use SSE.
_WEIGHT_RANGES = {"UINT8": (0, 255), "INT8": (-127, 127), "INT4": (-7, 7)}
_DTYPES = {"UINT8": np.uint8, "INT8": np.int8, "INT16": np.int16}
_ZERO_POINTS = {"UINT8": (117, 131), "INT8": (3, -9), "INT16": (0, 0), "FLOAT32": (0, 0)}


@dataclass(frozen=True)
class Operands:
    """Random input, weights and bias of a convolution, and the quantization of its output."""

    x: Fed
    weight: TensorDef
    bias: TensorDef
    y: TensorDef


def operands(
    kind: Kind,
    x_shape: tuple[int, ...],
    weight_shape: tuple[int, ...],
    *,
    channel_axis: int = 0,
    taps: int = 0,
    seed: int = 0,
) -> Operands:
    """Return random operands of a convolution.

    Args:
        kind: element types.
        x_shape: shape of the input.
        weight_shape: shape of the weights.
        channel_axis: axis of the output channels in the weights.
        taps: number of products in a sum; 0 means the number of weights per channel.
        seed: seed of the random generator.
    """
    rng = np.random.default_rng(seed)
    channels = weight_shape[channel_axis]
    taps = taps or int(np.prod(weight_shape)) // channels
    x_zero, y_zero = _ZERO_POINTS[kind.x]
    scales = _weight_scales(kind, channels, rng)
    weight = _weights(kind, weight_shape, scales, channel_axis, rng)
    if kind.is_float:
        x = fed(rng.standard_normal(x_shape).astype(np.float32))
        bias = constant(rng.standard_normal(channels).astype(np.float32))
        return Operands(x, weight, bias, tensor((), "FLOAT32"))
    values = rng.integers(*_RANGES[kind.x], x_shape, endpoint=True).astype(_DTYPES[kind.x])
    x = fed(values, scale=INPUT_SCALE, zero_point=x_zero)
    bias_values = rng.integers(-3000, 3000, channels)
    bias_type = np.int64 if kind.bias == "INT64" else np.int32
    bias = constant(
        bias_values.astype(bias_type), scale=(np.float32(INPUT_SCALE) * scales).tolist()
    )
    deviation = max(float(values.std()) if values.size else 0.0, 10.0)
    spread = np.sqrt(taps) * deviation * _WEIGHT_RANGES[kind.weight][1] * 0.6
    y_scale = INPUT_SCALE * scales.max() * spread / _RANGES[kind.x][1] * 2.2
    if kind.x == "UINT8":
        y_scale *= 2
    return Operands(x, weight, bias, tensor((), kind.x, scale=y_scale, zero_point=y_zero))


def _weight_scales(kind: Kind, channels: int, rng: np.random.Generator) -> Any:
    if kind.per_channel:
        return rng.uniform(0.3, 1, channels).astype(np.float32) * np.float32(WEIGHT_SCALE)
    return np.full(1, WEIGHT_SCALE, np.float32)


def _weights(
    kind: Kind, shape: tuple[int, ...], scales: Any, axis: int, rng: np.random.Generator
) -> TensorDef:
    if kind.weight == "FLOAT32":
        return constant(rng.standard_normal(shape).astype(np.float32))
    values = rng.integers(*_WEIGHT_RANGES[kind.weight], shape, endpoint=True)
    return constant(
        values, kind.weight, scale=scales.tolist(), zero_point=kind.weight_zero_point, axis=axis
    )
