"""Convolutions in tests: kinds of operands by name, and the fields that their options share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from delegraph.schema.enums import ActivationFunctionType, Padding
from delegraph.schema.table import Table
from delegraph.testing import TensorDef, convolution_operands
from delegraph.testing.convolution_operands import Kind, Operands
from support.agreement import Inputs, assert_agrees

TOLERANCE = 1e-5
"""Largest difference between float results, absolute and relative."""

KINDS: dict[str, Kind] = {
    "float": convolution_operands.FLOAT,
    "uint8": convolution_operands.UINT8,
    "int8": convolution_operands.INT8,
    "int8-channels": convolution_operands.INT8_CHANNELS,
    "int4-channels": convolution_operands.INT4_CHANNELS,
    "int16-int64-bias": convolution_operands.INT16_CHANNELS,
    "int16-int32-bias": convolution_operands.INT16_SHORT_BIAS,
    "hybrid": convolution_operands.HYBRID,
    "hybrid-channels": convolution_operands.HYBRID_CHANNELS,
    "hybrid-int4": convolution_operands.HYBRID_INT4,
}
KINDS_OF_ONE_SCALE = {
    f"{name}-one-scale": replace(KINDS[name], per_channel=False)
    for name in ("int4-channels", "int16-int64-bias", "int16-int32-bias")
}
"""Kinds of KINDS whose weights have one scale for all channels."""


def operands(kind: str, *shapes: tuple[int, ...], **given: Any) -> Operands:
    """Return random operands of a kind: see :func:`delegraph.testing.convolution_operands`."""
    return convolution_operands.operands((KINDS | KINDS_OF_ONE_SCALE)[kind], *shapes, **given)


def window(
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] | None = (1, 1),
    padding: Padding = Padding.SAME,
    act: ActivationFunctionType = ActivationFunctionType.NONE,
) -> dict[str, Any]:
    """Return the option fields common to all convolutions; *dilation* may be None."""
    dilations = dict(zip(("dilation_h_factor", "dilation_w_factor"), dilation or (), strict=False))
    return {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "fused_activation_function": act,
        **dilations,
    }


def assert_kind_agrees(
    op: str, inputs: Inputs, y: TensorDef, options: Table, version: int
) -> NDArray[Any]:
    """Check that both interpreters give the same output, and return it."""
    tolerance = TOLERANCE if y.type.name == "FLOAT32" else 0
    return assert_agrees(op, inputs, [y], options, version=version, tolerance=tolerance)[0]
