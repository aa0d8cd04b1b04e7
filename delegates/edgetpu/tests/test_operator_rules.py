"""The limits of each operator: what breaks them, and how that is said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.graph import parse_model
from delegraph.schema import options as o
from delegraph.schema.enums import ActivationFunctionType, FullyConnectedOptionsWeightsFormat
from delegraph.schema.table import Table
from delegraph.testing import TensorDef, constant, one_op_model, tensor
from delegraph_edgetpu.call import Call
from delegraph_edgetpu.operator_rules import RULES, broken_rules
from delegraph_edgetpu.reasons import Reason, Status

RELU_TANH = ActivationFunctionType.TANH
RELU = ActivationFunctionType.RELU


def q(*shape: int, type: str = "INT8", **more: Any) -> TensorDef:
    return tensor(shape, type, scale=0.5, zero_point=3, **more)


def whole(*values: int | list[int]) -> TensorDef:
    return constant(np.array(values, np.int32))


def filled(*shape: int, value: int = 1) -> TensorDef:
    return constant(np.full(shape, value, np.int8), scale=0.5, zero_point=3)


def bias(count: int) -> TensorDef:
    return constant(np.zeros(count, np.int32), scale=0.25)


def broken(
    op: str,
    inputs: Sequence[TensorDef | None],
    outputs: Sequence[TensorDef],
    options: Table | None = None,
    *,
    runtime: int = 14,
) -> tuple[Reason, ...]:
    subgraph = parse_model(one_op_model(op, inputs, outputs, options)).subgraphs[0]
    return broken_rules(Call(subgraph.operators[0], subgraph.tensors), runtime)


CONV = [q(1, 8, 8, 3), filled(5, 3, 3, 3), bias(5)]
PICTURE = q(1, 8, 8, 4)


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "options", "said"),
    [
        ("SOFTMAX", [q(1, 19200)], [q(1, 19200)], None, "19,200 elements, limit 16,000"),
        ("SOFTMAX", [q(3, 10)], [q(3, 10)], None, "input shape [3, 10], only the last dimension"),
        (
            "CONV_2D",
            CONV,
            [q(1, 4, 4, 5)],
            o.Conv2DOptions(dilation_h_factor=2, dilation_w_factor=1),
            "dilation 2 in y and 1 in x, must be equal",
        ),
        (
            "DEPTHWISE_CONV_2D",
            [PICTURE, filled(1, 3, 3, 4), bias(4)],
            [PICTURE],
            o.DepthwiseConv2DOptions(dilation_h_factor=1, dilation_w_factor=3),
            "dilation 1 in y and 3 in x",
        ),
        (
            "CONV_2D",
            CONV,
            [q(1, 8, 8, 5)],
            o.Conv2DOptions(fused_activation_function=RELU_TANH),
            "fused TANH, must be NONE, RELU, RELU6 or RELU_N1_TO_1",
        ),
        (
            "CONV_2D",
            [q(1, 8, 8, 3), q(5, 3, 3, 3), bias(5)],
            [q(1, 8, 8, 5)],
            o.Conv2DOptions(),
            "is computed, must be a constant",
        ),
        (
            "MAX_POOL_2D",
            [PICTURE],
            [q(1, 4, 4, 4)],
            o.Pool2DOptions(fused_activation_function=RELU),
            "fused RELU, must be NONE",
        ),
        (
            "CONCATENATION",
            [PICTURE, PICTURE, filled(1, 8, 8, 4, value=3)],
            [q(1, 8, 8, 12)],
            o.ConcatenationOptions(axis=3),
            "3 inputs, one of them constant, limit 2 inputs",
        ),
        (
            "CONCATENATION",
            [PICTURE, filled(1, 8, 8, 4, value=4)],
            [q(1, 8, 8, 8)],
            o.ConcatenationOptions(axis=3),
            "values other than zero, must be all zeros",
        ),
        (
            "FULLY_CONNECTED",
            [q(1, 4), filled(6, 4), bias(6)],
            [q(1, 6)],
            o.FullyConnectedOptions(
                weights_format=FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8
            ),
            "weights format SHUFFLED4x16INT8, must be DEFAULT",
        ),
        (
            "FULLY_CONNECTED",
            [q(1, 7, 4), filled(6, 4), bias(6)],
            [q(1, 7, 6)],
            o.FullyConnectedOptions(keep_num_dims=True),
            "output shape [1, 7, 6], must be one dimension beside the batch",
        ),
        ("MEAN", [PICTURE, whole(0, 1)], [q(8, 4)], None, "reduces dimension 0, the batch"),
        (
            "MEAN",
            [q(1, 8, 8, 6), whole(-1)],
            [q(1, 8, 8)],
            None,
            "a depth of 6, must be a multiple of 4",
        ),
        ("SUM", [PICTURE, whole(0)], [q(8, 8, 4)], None, "the batch"),
        ("REDUCE_MAX", [PICTURE, whole(-4)], [q(8, 8, 4)], None, "the batch"),
        (
            "PACK",
            [q(4), q(4)],
            [q(2, 4)],
            o.PackOptions(values_count=2, axis=0),
            "packs in dimension 0",
        ),
        (
            "SPLIT",
            [whole(0), q(2, 4)],
            [q(1, 4), q(1, 4)],
            o.SplitOptions(num_splits=2),
            "splits in dimension 0",
        ),
        (
            "PAD",
            [PICTURE, whole([1, 0], [0, 0], [0, 0], [0, 0])],
            [q(2, 8, 8, 4)],
            None,
            "pads the batch by [1, 0], must be [0, 0]",
        ),
        ("PRELU", [PICTURE, filled(8, 8, 4)], [PICTURE], None, "alpha has the shape [8, 8, 4]"),
        (
            "RESIZE_BILINEAR",
            [q(1, 33, 33, 21), whole(513, 513)],
            [q(1, 513, 513, 21)],
            None,
            "enlarges 33 x 33 to 513 x 513, 15.5 times, limit 8 times",
        ),
        (
            "STRIDED_SLICE",
            [q(1, 8), whole(0, 0), whole(1, 8), whole(1, 2)],
            [q(1, 4)],
            o.StridedSliceOptions(),
            "strides [1, 2], must be all 1",
        ),
        (
            "STRIDED_SLICE",
            [q(1, 8), whole(0, 0), whole(1, 8), whole(1, 1)],
            [q(1, 8)],
            o.StridedSliceOptions(ellipsis_mask=2),
            "ellipsis_mask is 2, must be 0",
        ),
        ("CONV_2D", CONV, [], o.Conv2DOptions(), "CONV_2D has no output, expected one"),
        ("HARD_SWISH", [PICTURE], [PICTURE], None, "it is no operator of the Edge TPU"),
        ("RELU", [tensor((4,))], [tensor((4,))], None, "is FLOAT32, must be INT8 or UINT8"),
        (
            "RELU",
            [q(4, type="INT16")],
            [q(4, type="INT16")],
            None,
            "is INT16, must be INT8 or UINT8",
        ),
        ("RELU", [tensor((4,), "INT8")], [q(4)], None, "has no scale, must be quantised"),
        (
            "RELU",
            [q(2, 8, 8, 4)],
            [q(2, 8, 8, 4)],
            None,
            "only the 3 innermost dimensions may exceed 1",
        ),
        (
            "ADD",
            [q(4, shape_signature=[-1]), q(4)],
            [q(4)],
            o.AddOptions(),
            "has the shape [-1], must be fixed",
        ),
        (
            "CONV_2D",
            [q(1, 8, 8, 2), constant(np.ones((5, 1, 1, 2)), "INT4", scale=0.5), bias(5)],
            [q(1, 8, 8, 5)],
            o.Conv2DOptions(),
            "is INT4, must be INT8 or UINT8, biases INT32",
        ),
    ],
)
def test_a_broken_rule_says_what_was_found_and_what_is_the_limit(
    op: str, inputs: list[TensorDef], outputs: list[TensorDef], options: Table | None, said: str
) -> None:
    reasons = broken(op, inputs, outputs, options)
    assert said in " | ".join(map(str, reasons))
    assert all(reason.remedy for reason in reasons)


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "options"),
    [
        ("SOFTMAX", [q(1, 16000)], [q(1, 16000)], None),
        (
            "CONV_2D",
            CONV,
            [q(1, 8, 8, 5)],
            o.Conv2DOptions(dilation_h_factor=2, dilation_w_factor=2),
        ),
        ("CONV_2D", CONV, [q(1, 8, 8, 5)], o.Conv2DOptions(fused_activation_function=RELU)),
        ("CONV_2D", [*CONV[:2], None], [q(1, 8, 8, 5)], o.Conv2DOptions()),
        (
            "CONCATENATION",
            [PICTURE, filled(1, 8, 8, 4, value=3)],
            [q(1, 8, 8, 8)],
            o.ConcatenationOptions(axis=3),
        ),
        ("FULLY_CONNECTED", [q(2, 4), filled(6, 4), None], [q(2, 6)], o.FullyConnectedOptions()),
        ("MEAN", [q(1, 8, 8, 6), whole(1, 2)], [q(1, 6)], None),
        ("MEAN", [PICTURE, whole(3)], [q(1, 8, 8)], None),
        ("SPLIT", [whole(0), q(1, 4)], [q(1, 4)], o.SplitOptions(num_splits=1)),
        ("SPLIT", [whole(1), q(1, 4)], [q(1, 2), q(1, 2)], o.SplitOptions(num_splits=2)),
        ("PRELU", [PICTURE, filled(1, 1, 4)], [PICTURE], None),
        ("RESIZE_BILINEAR", [PICTURE, whole(16, 16)], [q(1, 16, 16, 4)], None),
        ("QUANTIZE", [q(4, type="UINT8")], [q(4)], None),
    ],
)
def test_what_is_at_the_limit_maps(
    op: str, inputs: list[TensorDef], outputs: list[TensorDef], options: Table | None
) -> None:
    assert not broken(op, inputs, outputs, options)


def test_every_broken_rule_is_named() -> None:
    reasons = broken(
        "CONV_2D",
        CONV,
        [q(1, 4, 4, 5)],
        o.Conv2DOptions(fused_activation_function=RELU_TANH, dilation_h_factor=2),
    )
    assert [reason.rule for reason in reasons] == ["dilation", "fused-activation"]


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "status"),
    [
        ("HARD_SWISH", [q(4)], [q(4)], Status.UNKNOWN),
        ("DEQUANTIZE", [q(4)], [tensor((4,))], Status.DATA_TYPE),
        ("QUANTIZE", [tensor((4,))], [q(4)], Status.LIMIT),
        ("RELU", [q(2, 8, 8, 4)], [q(2, 8, 8, 4)], Status.RANK),
        ("SOFTMAX", [q(1, 20000)], [q(1, 20000)], Status.LIMIT),
    ],
)
def test_status_is_what_the_real_log_says(
    op: str, inputs: list[TensorDef], outputs: list[TensorDef], status: Status
) -> None:
    assert broken(op, inputs, outputs)[0].status is status


@pytest.mark.parametrize(("op", "since"), [("TRANSPOSE", 14), ("QUANTIZE", 13), ("PACK", 13)])
def test_older_runtimes_lack_operators(op: str, since: int) -> None:
    assert RULES[op].runtime == since
    inputs = [q(4), whole(0)] if op == "TRANSPOSE" else [q(4)]
    reasons = broken(op, inputs, [q(4)], runtime=since - 1)
    assert f"{op} needs runtime version {since}, limit {since - 1}" in map(str, reasons)
    assert reasons[0].status is Status.VERSION


README = Path(__file__).parents[1] / "README.md"


def test_table_of_operators_is_that_of_the_rules() -> None:
    text = README.read_text(encoding="utf-8")
    section = text[text.index("### What maps") : text.index("### The executable")]
    rows = re.findall(r"^\| (`[A-Z].*?) \|.*\| (\d+) \|$", section, re.M)
    said = {name: int(runtime) for names, runtime in rows for name in re.findall(r"`(.*?)`", names)}
    assert said == {name: rule.runtime for name, rule in RULES.items() if name != "DEQUANTIZE"}
