"""Shapes and ranges that recurrent cells, quantizations and some others refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flex_cases
from delegraph.errors import OperatorError
from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.executor import NumpyExecutor

F32 = DataType.FLOAT32
X = np.ones((1, 2), np.float32)
STATE = np.ones((1, 3), np.float32)
MATRIX, PEEP, BIAS = np.ones((5, 12), np.float32), np.ones(3, np.float32), np.ones(12, np.float32)
WEIGHTS = (MATRIX, PEEP, PEEP, PEEP, BIAS)


def run(op: str, *inputs: Any, **attrs: Any) -> list[np.ndarray]:
    return flex_cases.run(flex_cases.one(op, *inputs, T=F32, **attrs), NumpyExecutor())


def scalar(value: int) -> np.ndarray:
    return np.array(value, np.int64)


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("LSTMBlockCell", (X[0], STATE, STATE, *WEIGHTS), "expected 2 and 2 dimensions"),
        ("LSTMBlockCell", (X, STATE[:, :2], STATE, *WEIGHTS), r"cs_prev has shape \[1, 2\]"),
        ("LSTMBlockCell", (X, STATE, STATE, MATRIX[:4], *WEIGHTS[1:]), r"w has shape \[4, 12\]"),
        ("LSTMBlockCell", (X, STATE, STATE, *WEIGHTS[:4], BIAS[:3]), r"b has shape \[3\]"),
        ("BlockLSTM", (scalar(2), X[None], STATE, STATE, *WEIGHTS), "a number up to 1"),
        ("BlockLSTM", (scalar(-1), X[None], STATE, STATE, *WEIGHTS), "seq_len_max is -1"),
        ("BlockLSTM", (BIAS, X[None], STATE, STATE, *WEIGHTS), "a number up to 1"),
        ("BlockLSTMV2", (scalar(1), X, STATE, STATE, *WEIGHTS), "expected 3 and 2 dimensions"),
        (
            "GRUBlockCell",
            (X, STATE, MATRIX[:, :5], MATRIX[:, :3], BIAS[:6], PEEP),
            r"w_ru has shape \[5, 5\], expected \[5, 6\]",
        ),
        ("GRUBlockCell", (X[0], STATE, MATRIX, MATRIX, BIAS, PEEP), "expected matrices"),
    ],
)
def test_cells_refuse_shapes_that_do_not_fit(
    op: str, inputs: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run(op, *inputs)


@pytest.mark.parametrize(
    ("attrs", "limits", "message"),
    [
        ({"num_bits": 62}, (0, 1), "num_bits is 62, expected 1 to 61"),
        ({"num_bits": 63, "signed_input": False}, (0, 1), "expected 1 to 62"),
        ({"num_bits": 0}, (0, 1), "num_bits is 0"),
        ({"axis": 2}, (0, 1), "axis is 2, expected -1 to 1"),
        ({"axis": -2}, (0, 1), "axis is -2"),
        ({}, (1, 0), r"the range is from 1\.0 to 0\.0"),
        ({}, ([0, 0], [1, 1]), "2 and 2 ranges, expected one"),
        ({"axis": 1}, ([0], [1]), r"expected \[2\]"),
    ],
)
def test_quantizations_refuse_ranges_and_bits(
    attrs: dict[str, Any], limits: tuple[Any, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run("QuantizeAndDequantizeV2", X, *np.float32(limits), range_given=True, **attrs)


INTS, WORD = np.array([0, 6]), np.array(b"farmhash64", object)


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("UnravelIndex", (INTS, np.array([2, 3])), r"expected to lie in \[2, 3\]"),
        ("UnravelIndex", (INTS, np.array([2, 0])), "sizes above 0"),
        ("UnravelIndex", (INTS[None], np.array([2, 3])), "expected a vector"),
        ("Fingerprint", (PEEP[0], WORD), "data is a scalar"),
        ("Fingerprint", (PEEP, np.array(b"md5", object)), "method is b'md5'"),
        ("BandedTriangularSolve", (MATRIX, X), "expected 12 rows"),
        ("BandedTriangularSolve", (np.ones((3, 2), np.float32), X), r"bands \[3, 2\]"),
    ],
)
def test_others_refuse_what_tensorflow_refuses(
    op: str, inputs: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run(op, *inputs)


@pytest.mark.parametrize("op", ["QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"])
def test_a_range_for_each_channel_is_taken_as_by_the_version_that_takes_it(op: str) -> None:
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(4, 3)
    ranges = np.float32([[-1, -2, 0], [2, 3, 1]])
    attrs: dict[str, Any] = {"range_given": True, "axis": 1}
    (expected,) = run("QuantizeAndDequantizeV3", x, *ranges, np.int32(5), **attrs)
    (y,) = run(op, x, *ranges, num_bits=5, **attrs)
    np.testing.assert_array_equal(y, expected)


def test_a_long_sequence_of_nothing_asks_before_it_takes_memory() -> None:
    x = np.ones((500, 1, 0), np.float32)
    inputs = (scalar(500), x, STATE, STATE, MATRIX[:3], *WEIGHTS[1:])
    with flex_cases.memory_limit(3000):
        with pytest.raises(OperatorError, match=r"array of shape \[500, 1, 3\] needs 6000 bytes"):
            run("BlockLSTM", *inputs, out=flex_cases.type_of(x))
        with pytest.raises(OperatorError, match=r"array of shape \[1, 30, 30, 1\] needs 3600"):
            run("ResizeArea", np.ones((1, 30, 1, 1), np.float32), np.array([1, 30], np.int32))
