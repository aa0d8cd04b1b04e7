"""Values that a sweep of the core takes for known are entries of the page of differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

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


def read_again(second: float) -> SweepCase:
    x = constant(np.float32([1.0]))
    records = one_op_records("ABS", [x], [tensor((1,))])
    graphs = [graph.replace(inputs=(0,)) for graph in records.subgraphs or ()]
    model = write_model(records.replace(subgraphs=tuple(graphs)))
    return SweepCase("ABS", model, tuple((np.float32([value]),) for value in (1.0, second)))


def volume(x: float) -> SweepCase:
    cube = constant(np.ones((1,) * 5, np.float32))
    options = o.Conv3DOptions(stride_d=1, stride_w=1, stride_h=1)
    return swept("CONV_3D", [fed(np.full((1,) * 5, x, np.float32)), cube], ["FLOAT32"], options)


def swish(x: float) -> SweepCase:
    return swept("HARD_SWISH", [fed(np.float32([x]))], ["FLOAT32"])


def hard_swish(scale: float) -> SweepCase:
    y = tensor((), "INT8", scale=scale, zero_point=0)
    return swept("HARD_SWISH", [fed(np.zeros(1, np.int8), scale=0.1, zero_point=0)], [y])


def summed(x: float) -> SweepCase:
    return swept("ADD_N", [fed(np.float32([x]))] * 2, ["FLOAT32"], o.AddNOptions())


def verified(given: Any) -> SweepCase:
    x = given(np.int8([1]), scale=0.5, zero_point=0)
    inputs = [x, fed(np.float32([0]))]
    return swept("NumericVerify", inputs, ["FLOAT32"], custom_options=NO_TOLERANCE)


NO_TOLERANCE = bytes(flexbuffers.Dumps({"tolerance": 5.0, "log_if_failed": False}))


def one_hot(index: int) -> SweepCase:
    depth, on, off = (constant(np.int32(value)) for value in (3, 1, 0))
    inputs = [fed(np.int64([index])), depth, on, off]
    return swept("ONE_HOT", inputs, ["INT32"], o.OneHotOptions())


def sum_of(count: int) -> SweepCase:
    x = fed(np.ones(count, np.int8), scale=0.5, zero_point=0)
    y = tensor((), "INT8", scale=0.5, zero_point=40)
    return swept("SUM", [x, constant(np.int32([0]))], [y], o.ReducerOptions())


def offset_slice(length: int, stride: int = 1) -> SweepCase:
    indices = [constant(np.int32([i])) for i in (1, length, stride)]
    inputs = [fed(np.ones(4, np.float32)), *indices]
    return swept(
        "STRIDED_SLICE", inputs, ["FLOAT32"], o.StridedSliceOptions(offset=True), version=8
    )


def spectrum(width: int) -> SweepCase:
    inputs = [fed(np.ones((4, 4), np.float32)), constant(np.int32([4, width]))]
    return swept("RFFT2D", inputs, ["COMPLEX64"], o.Rfft2dOptions())


def difference(scale: float) -> SweepCase:
    x = fed(np.zeros(1, np.int8), scale=0.5, zero_point=0)
    return swept("SUB", [x, x], [tensor((), "INT8", scale=scale, zero_point=0)], o.SubOptions())


def depthwise(zero_point: int) -> SweepCase:
    x = fed(np.ones((1, 1, 1, 1), np.int8), scale=0.5, zero_point=0)
    weight = constant(np.ones((1, 1, 1, 1), np.int8), scale=[0.5], zero_point=[zero_point])
    y = tensor((), "INT8", scale=0.5, zero_point=0)
    bias = constant(np.int32([0]), scale=[0.25])
    options = o.DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
    return swept("DEPTHWISE_CONV_2D", [x, weight, bias], [y], options, version=3)


CASES: dict[str, tuple[SweepCase, SweepCase]] = {
    "arg-max-beside-nan": (arg_max(NAN), arg_max(np.ones_like(NAN))),
    "constant-inputs-that-nodes-have-read": (read_again(2.0), read_again(1.0)),
    "conv-3d-of-subnormal-numbers": (volume(1e-39), volume(1.0)),
    "conv-weights-of-float16": (convolution(np.float16), convolution(np.float32)),
    "dequantize-with-a-scale-a-block": (widened(by_blocks=True), widened(by_blocks=False)),
    "fully-connected-by-blocks-to-few-outputs": (by_blocks(3), by_blocks(4)),
    "hard-swish-of-coarse-outputs": (hard_swish(100.0), hard_swish(50.0)),
    "hard-swish-of-the-largest-floats": (swish(3e38), swish(1e37)),
    "hybrid-inputs-that-are-no-numbers": (product(NAN), product(np.ones_like(NAN))),
    "infinite-sums": (summed(np.inf), summed(1.0)),
    "lengths-beyond-the-dimension": (offset_slice(4), offset_slice(3)),
    "local-response-beside-nan": (local_response(NAN), local_response(np.ones_like(NAN))),
    "matrix-diag-of-other-types": (matrix(np.float16), matrix(np.float32)),
    "numeric-verify-of-a-constant": (verified(constant), verified(fed)),
    "one-hot-of-indices-beyond-int32": (one_hot(2**32 + 1), one_hot(1)),
    "products-beyond-int32": (scaled_sum(1e7), scaled_sum(1.0)),
    "quantize-beyond-int32": (quantize(1.0, 2.0**30), quantize(1.0, 2.0**29)),
    "quantized-sums-of-nothing": (sum_of(0), sum_of(2)),
    "quotient-of-the-least-integer": (quotient(-1), quotient(1)),
    "recurrent-clamps-of-nan": (recurrent(NAN), recurrent(np.ones_like(NAN))),
    "rfft2d-of-width-1": (spectrum(1), spectrum(2)),
    "sparse-weights-of-int16": (sparse_product("INT16"), sparse_product("FLOAT32")),
    "sums-of-much-larger-scales": (difference(1e-10), difference(1e-6)),
    "unique-values-beside-nan": (unique(NAN), unique(np.ones_like(NAN))),
    "zero-points-of-convolution-weights": (depthwise(5), depthwise(0)),
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


def test_a_node_without_outputs_is_no_difference() -> None:
    records = one_op_records("ASSIGN_VARIABLE", [tensor((), "RESOURCE"), tensor((1,))], [])
    case = SweepCase("ASSIGN_VARIABLE", write_model(records), ((np.zeros((), object),) * 2,))
    assert documented_values(case) is None


def test_an_int64_bias_may_leave_32_bits() -> None:
    x = fed(np.zeros((1, 1, 1, 1), np.int16), scale=0.5, zero_point=0)
    weight = constant(np.ones((1, 1, 1, 1), np.int8), scale=[0.5], zero_point=[0])
    bias, y = constant(np.int64([-(2**62)])), tensor((), "INT16", scale=0.5, zero_point=0)
    options = o.Conv2DOptions(stride_w=1, stride_h=1)
    case = swept("CONV_2D", [x, weight, bias], [y], options, version=5)
    assert documented_values(case) == "products-beyond-int32"


def test_a_documented_value_is_not_judged() -> None:
    pytest.importorskip("ai_edge_litert")
    core = Comparison(CORE)
    assert core.judge(quantize(1.0, float("inf"))).outcome == "not judged"
    assert core.judge(quantize(1.0, 3.0)).outcome == "equal"
