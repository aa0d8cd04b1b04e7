"""Operators and types that TFLM's kernels take, as the wheel `tflite-micro` takes them."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph.graph.loader import parse_model
from delegraph.micro.supported_operators import unsupported_operators
from delegraph.testing import constant, one_op_model, tensor

BYTES = constant(np.zeros((4, 10), np.int8), scale=0.5)


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "found"),
    [
        ("ATAN2", [tensor((2,)), tensor((2,))], [tensor((2,))], ("ATAN2",)),
        ("ADD", [tensor((2,)), tensor((2,))], [tensor((2,))], ()),
        (
            "DEQUANTIZE",
            [tensor((2,), "FLOAT16")],
            [tensor((2,))],
            ("DEQUANTIZE of FLOAT16",),
        ),
        (
            "FULLY_CONNECTED",
            [tensor((1, 10)), BYTES],
            [tensor((1, 4))],
            ("FULLY_CONNECTED of FLOAT32 and INT8",),
        ),
        (
            "FULLY_CONNECTED",
            [tensor((1, 10), "INT8", scale=0.5), BYTES],
            [tensor((1, 4), "INT8", scale=0.5)],
            (),
        ),
        (
            "FLOOR_MOD",
            [tensor((2,), "INT32")] * 2,
            [tensor((2,), "INT32")],
            ("FLOOR_MOD of INT32",),
        ),
        ("RESHAPE", [tensor((2,), "UINT8")], [tensor((2,), "UINT8")], ()),
    ],
)
def test_operators_that_tflm_lacks_are_named_with_their_types(op, inputs, outputs, found):
    model = parse_model(one_op_model(op, inputs, outputs))
    assert unsupported_operators(model) == found
