"""Values that a sweep of the core takes for known are entries of the page of differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.schema import options as o
from delegraph.schema.enums import ActivationFunctionType, TensorType
from delegraph.schema.writer import write_model
from delegraph.testing import constant, fed, operator_case, tensor
from delegraph.testing.one_op import one_op_records
from delegraph.testing.operator_cases.quantizing import sparse_rows, with_blocks
from delegraph.testing.recurrent_layers import state
from delegraph.testing.sweep.comparison import CORE, Comparison
from delegraph.testing.sweep.documented_values import VALUES, documented_values
from delegraph.testing.sweep.sweep_case import SweepCase

PAGE = Path(__file__).parents[3] / "docs" / "differences.md"
NAN = np.float32([[np.nan, 1.0]])


def swept(op: str, inputs: Any, outputs: Any, options: Any = None, **given: Any) -> SweepCase:
    case = operator_case(op, inputs, outputs, options, **given)
    return SweepCase(op, case.model(), case.steps)


def quantize(*values: float) -> SweepCase:
    return swept("QUANTIZE", [fed(np.float32(values))], [tensor((), "INT16", scale=0.5)])


def arg_max(x: Any) -> SweepCase:
    options = o.ArgMaxOptions(output_type=TensorType.INT32)
    return swept("ARG_MAX", [fed(x), constant(np.int32(1))], ["INT32"], options)


def convolution(type_: Any) -> SweepCase:
    image, bias = fed(np.ones((1, 2, 2, 1), np.float32)), constant(np.zeros(1, np.float32))
    inputs = [image, constant(np.ones((1, 1, 1, 1), type_)), bias]
    return swept("CONV_2D", inputs, ["FLOAT32"], o.Conv2DOptions(stride_w=1, stride_h=1))


def product(x: Any) -> SweepCase:
    weight = constant(np.int8([[1, 2]]), scale=0.5)
    return swept("FULLY_CONNECTED", [fed(x), weight], ["FLOAT32"], o.FullyConnectedOptions())


def local_response(x: Any) -> SweepCase:
    options = o.LocalResponseNormalizationOptions(bias=1.0, alpha=1.0, beta=0.5)
    return swept("LOCAL_RESPONSE_NORMALIZATION", [fed(x[None, None])], ["FLOAT32"], options)


def quotient(b: int) -> SweepCase:
    return swept("FLOOR_DIV", [fed(np.int8([-128])), fed(np.int8([b]))], ["INT8"])


def recurrent(x: Any) -> SweepCase:
    weights = constant(np.ones((1, 2), np.float32)), constant(np.ones((1, 1), np.float32))
    inputs = [fed(x), *weights, constant(np.zeros(1, np.float32)), state(1, 1)]
    options = o.RNNOptions(fused_activation_function=ActivationFunctionType.RELU6)
    return swept("RNN", inputs, ["FLOAT32"], options, version=3)


def widened(*, by_blocks: bool) -> SweepCase:
    x = constant(np.ones((1, 32), np.int8), "INT4", scale=0.5)
    records = one_op_records("DEQUANTIZE", [x], [tensor((1, 32))])
    if by_blocks:
        records = with_blocks(records, 0, np.ones((1, 1), np.float16), 32)
    return SweepCase("DEQUANTIZE", write_model(records), ((),))


def by_blocks(outputs: int) -> SweepCase:
    x, weights = np.ones((2, 64), np.float32), np.ones((outputs, 64), np.int8)
    inputs = [tensor(x.shape), constant(weights, "INT4")]
    y, options = tensor((2, outputs)), o.FullyConnectedOptions()
    records = one_op_records("FULLY_CONNECTED", inputs, [y], options)
    model = write_model(with_blocks(records, 1, np.ones((outputs, 2), np.float16), 32))
    return SweepCase("FULLY_CONNECTED", model, ((x,),))


def unique(x: Any) -> SweepCase:
    return swept("UNIQUE", [fed(x[0])], ["FLOAT32", "INT32"], o.UniqueOptions())


def scaled_sum(scale: float) -> SweepCase:
    image = fed(np.ones((1, 1, 1, 1), np.int8), scale=0.5, zero_point=0)
    weight = constant(np.ones((1, 1, 1, 1), np.int8), scale=[scale], zero_point=[0])
    inputs = [image, weight, constant(np.int32([2000]), scale=[0.5])]
    y = tensor((), "INT8", scale=0.5, zero_point=0)
    return swept("CONV_2D", inputs, [y], o.Conv2DOptions(stride_w=1, stride_h=1))


def sparse_product(type_: str) -> SweepCase:
    quantized = {"scale": 0.5} if type_ == "INT16" else {}
    weight_type = "INT8" if type_ == "INT16" else type_
    values = np.ones(4, weight_type.lower())
    weight = sparse_rows(weight_type, np.eye(4, dtype=bool), values)
    weight = replace(weight, quantization=constant(values, **quantized).quantization)
    inputs = [fed(np.ones((1, 4), type_.lower()), **quantized), weight]
    y = tensor((), type_, **quantized)
    return swept("FULLY_CONNECTED", inputs, [y], o.FullyConnectedOptions(), version=9)


def matrix(type_: Any) -> SweepCase:
    x = fed(np.ones(2, type_))
    return swept("MATRIX_DIAG", [x], [x.definition.type.name], o.MatrixDiagOptions())


CASES: dict[str, tuple[SweepCase, SweepCase]] = {
    "arg-max-beside-nan": (arg_max(NAN), arg_max(np.ones_like(NAN))),
    "conv-weights-of-float16": (convolution(np.float16), convolution(np.float32)),
    "dequantize-with-a-scale-a-block": (widened(by_blocks=True), widened(by_blocks=False)),
    "fully-connected-by-blocks-to-few-outputs": (by_blocks(3), by_blocks(4)),
    "hybrid-inputs-that-are-no-numbers": (product(NAN), product(np.ones_like(NAN))),
    "local-response-beside-nan": (local_response(NAN), local_response(np.ones_like(NAN))),
    "matrix-diag-of-other-types": (matrix(np.float16), matrix(np.float32)),
    "products-beyond-int32": (scaled_sum(1e7), scaled_sum(1.0)),
    "quantize-beyond-int32": (quantize(1.0, 2.0**30), quantize(1.0, 2.0**29)),
    "quotient-of-the-least-integer": (quotient(-1), quotient(1)),
    "recurrent-clamps-of-nan": (recurrent(NAN), recurrent(np.ones_like(NAN))),
    "sparse-weights-of-int16": (sparse_product("INT16"), sparse_product("FLOAT32")),
    "unique-values-beside-nan": (unique(NAN), unique(np.ones_like(NAN))),
}
"""A case that an entry is about, and one that it is not, by the entry's id."""


@pytest.mark.parametrize("name", VALUES)
def test_each_value_has_an_entry(name: str) -> None:
    assert f'id="{name}"' in PAGE.read_text()


@pytest.mark.parametrize("name", VALUES)
def test_a_case_of_an_entry_is_known_and_others_are_not(name: str) -> None:
    documented, other = CASES[name]
    assert documented_values(documented) == name
    assert documented_values(other) is None


def test_a_documented_value_is_not_judged() -> None:
    pytest.importorskip("ai_edge_litert")
    core = Comparison(CORE)
    assert core.judge(quantize(1.0, float("inf"))).outcome == "not judged"
    assert core.judge(quantize(1.0, 3.0)).outcome == "equal"
