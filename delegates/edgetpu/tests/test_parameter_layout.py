"""Bytes of parameters on the chip, beside those of the real compiler's public files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph.graph import parse_model
from delegraph.testing import TensorDef, constant, one_op_model
from delegraph_edgetpu.call import Call
from delegraph_edgetpu.parameter_layout import parameter_sizes
from quantised_chains import bias, q, weights


def sizes(op: str, inputs: list[TensorDef], output: TensorDef) -> list[int]:
    subgraph = parse_model(one_op_model(op, inputs, [output])).subgraphs[0]
    return list(parameter_sizes([Call(subgraph.operators[0], subgraph.tensors)]).values())


@pytest.mark.parametrize(
    ("op", "shape", "expected"),
    [
        ("CONV_2D", (8, 3, 3, 3), 640),  # the first layers of mobilenet_v1_0.25_128_quant
        ("DEPTHWISE_CONV_2D", (1, 3, 3, 8), 320),
        ("CONV_2D", (16, 1, 1, 8), 192),
        ("CONV_2D", (1001, 1, 1, 256), 266_240),  # its last
        ("CONV_2D", (72, 1, 1, 12), 2_048),  # of deeplabv3_mnv2_dm05_pascal_quant
        ("DEPTHWISE_CONV_2D", (1, 3, 3, 72), 2_880),
        ("FULLY_CONNECTED", (10, 560), 9_024),  # of keras_lstm_mnist_ptq
    ],
)
def test_layers_have_the_bytes_of_real_files(
    op: str, shape: tuple[int, ...], expected: int
) -> None:
    outputs = shape[-1] if op == "DEPTHWISE_CONV_2D" else shape[0]
    inputs = [q(1, 4, 4, shape[-1]), weights(*shape), bias(outputs)]
    assert sizes(op, inputs, q(1, 4, 4, outputs)) == [expected]
    assert sizes(op, inputs[:2], q(1, 4, 4, outputs)) == [expected]  # the head is there without


def test_a_scale_for_each_output_takes_4_bytes_more() -> None:
    given: Any = constant(np.ones((256, 256), np.int8), scale=[0.5] * 256)
    assert sizes("FULLY_CONNECTED", [q(1, 256), given], q(1, 256)) == [66 * 1024]


def test_shapes_and_axes_are_no_parameters() -> None:
    shape = constant(np.array([4, 2], np.int32))
    assert sizes("RESHAPE", [q(2, 4), shape], q(4, 2)) == []
    assert sizes("ADD", [q(2, 4), weights(4)], q(2, 4)) == [4]
