"""Facts about a case: options, quantization, and values if they are few."""

from __future__ import annotations

from typing import Any

import numpy as np

from delegraph.schema.enums import ActivationFunctionType
from delegraph.schema.options import AddOptions
from delegraph.testing.one_op import constant, tensor
from delegraph.testing.operator_case import Given, fed, operator_case, texts
from delegraph.testing.sweep.case_facts import fact_lines, input_facts, node_facts
from delegraph.testing.sweep.sweep_case import SweepCase

RELU = AddOptions(fused_activation_function=ActivationFunctionType.RELU)


def case(inputs: list[Given], output: Any, options: Any = None) -> SweepCase:
    made = operator_case("ADD", inputs, [output], options)
    return SweepCase("ADD", made.model(), made.steps)


def test_the_activation_the_quantization_and_small_values_are_told() -> None:
    x = fed(np.array([1, -2], np.int8), scale=0.5, zero_point=3)
    y = constant(np.array([7], np.int8), scale=0.25)
    quantized = case([x, y], tensor((2,), "INT8", scale=0.1, zero_point=-1), RELU)
    assert list(fact_lines(quantized)) == [
        "ADD: activation=RELU; INT8[2] scale 0.5 zero point 3, INT8[1] scale 0.25 zero point 0"
        " = [7] -> INT8[2] scale 0.1 zero point -1",
        "invoke0_input0 = [1, -2]",
    ]
    (node,) = node_facts(quantized.content)
    assert node["options"] == {"fused_activation_function": "RELU"}
    output = {"type": "INT8", "shape": [2], "scale": [0.1], "zero_point": [-1]}
    assert node["outputs"] == [output]
    assert input_facts(quantized) == {"invoke0_input0": [1, -2]}


def test_many_values_are_left_out_and_floats_are_short() -> None:
    many, few = fed(np.ones((3, 3), np.float32)), fed(np.array([0.1], np.float32))
    assert list(fact_lines(case([many, few], "FLOAT32"))) == [
        "ADD: FLOAT32[3, 3], FLOAT32[1] -> FLOAT32[]",
        "invoke0_input1 = [0.1]",
    ]


def test_texts_of_any_bytes_are_told() -> None:
    given = SweepCase("ADD", b"", ((texts(b"one", b"\xc3"), np.array([1j], np.complex64)),))
    told = {"invoke0_input0": ["one", "\\xc3"], "invoke0_input1": ["1j"]}
    assert input_facts(given) == told


def test_a_file_that_is_no_model_has_no_facts() -> None:
    assert node_facts(b"no model") == []
