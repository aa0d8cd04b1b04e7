"""Multiply-adds, cycles and the estimate of the time on a device."""

from __future__ import annotations

import pytest

import delegraph_edgetpu
from compiled_models import DIGITS
from delegraph.graph import parse_model
from delegraph.schema.options import Conv2DOptions, DepthwiseConv2DOptions, FullyConnectedOptions
from delegraph.testing import TensorDef, one_op_model
from delegraph_edgetpu.call import Call
from delegraph_edgetpu.operator_cost import cycles, multiply_adds
from quantised_chains import bias, chain, q, weights


def call(op: str, inputs: list[TensorDef], output: TensorDef, options: object = None) -> Call:
    model = one_op_model(op, inputs, [output], options)  # type: ignore[arg-type]
    subgraph = parse_model(model).subgraphs[0]
    return Call(subgraph.operators[0], subgraph.tensors)


@pytest.mark.parametrize(
    ("given", "expected_multiply_adds", "expected_cycles"),
    [
        (
            call(
                "CONV_2D",
                [q(1, 8, 8, 65), weights(128, 3, 3, 65), bias(128)],
                q(1, 4, 4, 128),
                Conv2DOptions(),
            ),
            16 * 9 * 65 * 128,
            16 * 9 * 2 * 2,
        ),
        (
            call(
                "DEPTHWISE_CONV_2D",
                [q(1, 8, 8, 65), weights(1, 3, 3, 65), bias(65)],
                q(1, 8, 8, 65),
                DepthwiseConv2DOptions(),
            ),
            64 * 9 * 65,
            64 * 9 * 2,
        ),
        (
            call(
                "FULLY_CONNECTED",
                [q(2, 100), weights(10, 100), bias(10)],
                q(2, 10),
                FullyConnectedOptions(),
            ),
            2 * 100 * 10,
            2 * 2,
        ),
        (call("RELU", [q(1, 10, 10)], q(1, 10, 10)), 0, 2),
    ],
)
def test_products_are_counted(
    given: Call, expected_multiply_adds: int, expected_cycles: int
) -> None:
    assert multiply_adds(given) == expected_multiply_adds
    assert cycles(given) == expected_cycles


def test_estimate_is_its_formula() -> None:
    model = chain(
        [("CONV_2D", "x w b", "y", Conv2DOptions(stride_w=1, stride_h=1))],
        outputs="y",
        tensors={
            "x": q(1, 8, 8, 64), "w": weights(64, 1, 1, 64), "b": bias(64), "y": q(1, 8, 8, 64),
        },
    )  # fmt: skip
    (compilation,) = delegraph_edgetpu.compile(model)
    found = compilation.estimate
    assert found.compute == pytest.approx(64 / 480e6)
    assert found.transfer == pytest.approx(2 * 8 * 8 * 64 / 500e6)
    assert found.streaming == 0
    assert found.seconds == pytest.approx(found.compute + found.transfer)


def test_work_is_divided_between_device_and_cpu() -> None:
    (whole,) = delegraph_edgetpu.compile(DIGITS)
    (part,) = delegraph_edgetpu.compile(
        DIGITS, intermediate_tensors=[_first_output(DIGITS.read_bytes())]
    )
    assert whole.work.unmapped == 0
    assert 0 < part.work.mapped < whole.work.mapped
    assert part.work.mapped + part.work.unmapped == whole.work.mapped


def _first_output(model: bytes) -> str:
    subgraph = parse_model(model).subgraphs[0]
    return subgraph.tensors[subgraph.operators[0].outputs[0]].name
