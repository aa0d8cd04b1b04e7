"""Models that the kit's own cases lack: int16 by int8 or int4, and 8 bits into int16."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph.schema.enums import TensorType
from delegraph.schema.options import Conv2DOptions, FullyConnectedOptions, SoftmaxOptions
from delegraph.testing import OperatorCase, constant, fed, operator_case, tensor
from delegraph.testing.convolution_operands import Kind, operands

_INT4 = Kind("INT16", "INT4", "INT64", per_channel=True)


def wide_cases() -> Iterator[OperatorCase]:
    """Yield products of int16 and narrower weights, and SOFTMAX of 8 bits into int16."""
    wide = TensorType.INT64
    image = operands(_INT4, (2, 5, 6, 4), (8, 3, 3, 4))
    steps = Conv2DOptions(stride_h=1, stride_w=2, quantized_bias_type=wide)
    inputs = [image.x, image.weight, image.bias]
    yield operator_case("CONV_2D", inputs, [image.y], steps, version=8)
    rows = operands(_INT4, (5, 33), (7, 33))
    dense = FullyConnectedOptions(quantized_bias_type=wide)
    inputs = [rows.x, rows.weight, rows.bias]
    yield operator_case("FULLY_CONNECTED", inputs, [rows.y], dense, version=12)
    generator = np.random.default_rng(0)
    x = generator.integers(-32768, 32768, (2, 5, 9)).astype(np.int16)
    weight = generator.integers(-128, 128, (9, 4)).astype(np.int8)
    scales: tuple[dict[str, Any], ...] = ({"scale": 0.01}, {"scale": [0.01] * 4, "axis": 1})
    for given in scales:  # of channels, the kernel takes none
        pair = [fed(x, scale=1e-4), constant(weight, **given)]
        y = tensor((2, 5, 4), "INT16", scale=3e-4)
        yield operator_case("BATCH_MATMUL", pair, [y], version=4)
    for dtype in (np.int8, np.uint8):
        limits = np.iinfo(dtype)
        values = generator.integers(limits.min, limits.max, (3, 40), dtype, endpoint=True)
        y = tensor((3, 40), "INT16", scale=2**-15)
        options = SoftmaxOptions(beta=1.0)
        yield operator_case("SOFTMAX", [fed(values, scale=0.05)], [y], options, version=3)
