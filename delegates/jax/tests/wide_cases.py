"""Models that the kit's own cases lack: int16 activations by int8 or int4 weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph.schema.enums import TensorType
from delegraph.schema.layer_options import Conv2DOptions, FullyConnectedOptions
from delegraph.testing import constant, tensor
from delegraph.testing.convolution_operands import Kind, operands
from delegraph.testing.operator_case import OperatorCase, fed, operator_case

_INT4 = Kind("INT16", "INT4", "INT64", per_channel=True)


def wide_cases() -> Iterator[OperatorCase]:
    """Yield CONV_2D and FULLY_CONNECTED with int4 weights, and BATCH_MATMUL of int16 by int8."""
    wide = TensorType.INT64
    image = operands(_INT4, (2, 5, 6, 4), (8, 3, 3, 4))
    options = Conv2DOptions(stride_h=1, stride_w=2, quantized_bias_type=wide)
    inputs = [image.x, image.weight, image.bias]
    yield operator_case("CONV_2D", inputs, [image.y], options, version=8)
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
