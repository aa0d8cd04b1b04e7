"""Values that operators of the NumPy executor refuse, as TensorFlow does."""

from __future__ import annotations

import dataclasses
import importlib.util
import logging
import time
from typing import Any

import numpy as np
import pytest

import flex_cases
from delegraph import TensorType
from delegraph.errors import OperatorError
from delegraph_flex.data_types import DataType
from delegraph_flex.flex_node import Unsupported
from delegraph_flex.numpy_executor.executor import NumpyExecutor

HAS_RE2 = importlib.util.find_spec("re2") is not None
I32, F32 = DataType.INT32, DataType.FLOAT32
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def run(op: str, *inputs: Any, **attrs: Any) -> list[np.ndarray]:
    return flex_cases.run(flex_cases.one(op, *inputs, **attrs), NumpyExecutor())


REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    *(
        (op, (ints(1, 2), ints(0, 1)), {"T": I32}, "integer division by zero")
        for op in ("Div", "FloorDiv", "TruncateDiv", "FloorMod", "Mod", "TruncateMod")
    ),
    ("Pow", (ints(2), ints(-1)), {"T": I32}, "negative integer powers"),
    ("Sub", (X, X[:, :2]), {"T": F32}, "could not be broadcast"),
    ("AddN", (X, X[:1]), {"T": F32, "N": 2}, "expected equal ones"),
    ("ClipByValue", (X, X[:1], X), {"T": F32}, "bound has shape"),
    ("ApproximateEqual", (X, X[:1]), {"T": F32}, r"y has shape \[1, 3\]"),
    ("Equal", (X, X[:, :2]), {"T": F32}, "could not be broadcast"),
    ("Select", (ints(1) > 0, X, X), {"T": F32}, r"condition has shape \[1\]"),
    ("Select", (X > 0, X, X[:1]), {"T": F32}, "expected that of x"),
    ("Sum", (X, ints(2)), {"T": F32, "Tidx": I32}, "out of bounds"),
    ("Sum", (X, ints(0, -2)), {"T": F32, "Tidx": I32}, "duplicate"),
    ("ArgMax", (X[:0], np.int32(0)), {"T": F32, "Tidx": I32}, "empty"),
    ("EnsureShape", (X,), {"T": F32, "shape": (3, -1)}, r"expected \[3, -1\]"),
    ("Reshape", (X, ints(-1, -1)), {"T": F32, "Tshape": I32}, "other than a single -1"),
    ("Reshape", (X, ints(-2, 3)), {"T": F32, "Tshape": I32}, "other than a single -1"),
    ("Reshape", (X, ints(4, -1)), {"T": F32, "Tshape": I32}, "cannot reshape"),
    ("Squeeze", (X,), {"T": F32, "squeeze_dims": [0]}, "squeeze"),
    ("ExpandDims", (X, np.int32(3)), {"T": F32, "Tdim": I32}, r"expected it in \[-3, 3\)"),
    ("Transpose", (X, ints(0, 0)), {"T": F32, "Tperm": I32}, "repeated axis"),
    ("Transpose", (X, ints(0)), {"T": F32, "Tperm": I32}, "axes don't match"),
    ("BroadcastArgs", (ints(2, 3), ints(2)), {"T": I32}, "shape mismatch"),
    ("Bitcast", (ints(1, 2, 3),), {"T": I32, "type": DataType.INT64}, r"expected \[\.\.\., 2\]"),
    ("Slice", (X, ints(0, 2), ints(2, 2)), {"T": F32, "Index": I32}, "leave shape"),
    ("Slice", (X, ints(0), ints(2)), {"T": F32, "Index": I32}, "expected 2"),
    ("StridedSlice", (X, ints(0), ints(1), ints(0)), {"T": F32, "Index": I32}, "zero"),
    *(
        ("StridedSlice", (X, ints(at), ints(1), ints(by)), attrs, message)
        for attrs in [{"T": F32, "Index": I32, "shrink_axis_mask": 1}]
        for at, by, message in ((2, 1, "element 2 is not in"), (1, -1, "has stride -1"))
    ),
    (
        "StridedSlice",
        (X, *[ints(0, 0, 0)] * 2, ints(1, 1, 1)),
        {"T": F32, "Index": I32},
        "3 positions are too many",
    ),
    (
        "StridedSlice",
        (X, *[ints(0, 0, 0, 0)] * 2, ints(1, 1, 1, 1)),
        {"T": F32, "ellipsis_mask": 1},
        "4 positions are too many",
    ),
    ("Split", (np.int32(1), X), {"T": F32, "num_split": 2}, "no 2 equal parts"),
    ("SplitV", (X, ints(1, 1), np.int32(1)), {"T": F32, "num_split": 2}, "no 2 parts of 3"),
    ("Unpack", (X,), {"T": F32, "num": 3}, "axis 0 has 2 elements"),
    ("ReverseV2", (X, ints(0, -2)), {"T": F32, "Tidx": I32}, "name axis 0 twice"),
    ("ReverseSequence", (X, ints(4, 1)), {"T": F32, "Tlen": I32, "seq_dim": 1}, "length 4"),
    ("ReverseSequence", (X, ints(4)), {"T": F32, "Tlen": I32, "seq_dim": 1}, r"expected \[2\]"),
    ("ConcatV2", (X, X[:1], np.int32(1)), {"T": F32, "N": 2, "Tidx": I32}, "must match exactly"),
    ("ConcatV2", (X, X, np.int32(2)), {"T": F32, "N": 2, "Tidx": I32}, "out of bounds"),
    ("ConcatOffset", (np.int32(0), ints(1, 2), ints(1, 3)), {"N": 2}, "beside axis 0"),
    ("Pack", (X, X[:1]), {"T": F32, "N": 2}, "inputs have shapes"),
    ("Pad", (X, ints([0, -1], [0, 0])), {"T": F32}, "negative"),
    ("Pad", (X, ints([0, 1])), {"T": F32}, r"expected \[2, 2\]"),
    ("Pad", (X, ints([2**30] * 2, [2**30] * 2)), {"T": F32}, "more than the limit"),
    (
        "MirrorPad",
        (X, ints([2, 0], [0, 0])),
        {"T": F32, "mode": b"REFLECT"},
        r"expected 0 \.\.\. 1",
    ),
    ("Tile", (X, ints(2)), {"T": F32}, "one for each of 2 axes"),
    ("Tile", (X, ints(2**30, 2**30)), {"T": F32}, "more than the limit"),
    ("BroadcastTo", (X, ints(3)), {"T": F32, "Tidx": I32}, "does not broadcast"),
    ("BroadcastTo", (X, ints(2, -1)), {"T": F32, "Tidx": I32}, "negative"),
    ("Fill", (ints(2**30, 2**30), X[0, 0]), {"T": F32}, "more than the limit"),
    ("Range", (np.int32(0), np.int32(5), np.int32(-1)), {"Tidx": I32}, "never ends"),
    ("Range", (np.int32(0), np.int32(5), np.int32(0)), {"Tidx": I32}, "never ends"),
    ("Range", (X[0, 0], np.float32(np.inf), X[0, 1]), {"Tidx": F32}, "never ends"),
    (
        "Range",
        (np.int64(0), np.int64(2**60), np.int64(1)),
        {"Tidx": DataType.INT64},
        "more than the limit",
    ),
    ("LinSpace", (X[0, 0], X[0, 1], np.int32(0)), {"T": F32, "Tidx": I32}, "num is 0"),
    ("OneHot", (ints(1), np.int32(-1), X[0, 0], X[0, 1]), {"T": F32, "TI": I32}, "negative"),
    ("OneHot", (ints(1), np.int32(2**31 - 1), X[0, 0], X[0, 1]), {"T": F32, "axis": 2}, "axis is"),
    (
        "SpaceToBatchND",
        (np.zeros((1, 3, 2), np.float32), ints(2), ints([0, 0])),
        {"T": F32, "Tblock_shape": I32, "Tpaddings": I32},
        "no multiple of blocks",
    ),
    (
        "BatchToSpaceND",
        (np.zeros((2, 3, 2), np.float32), ints(2), ints([4, 3])),
        {"T": F32, "Tblock_shape": I32, "Tcrops": I32},
        "leave less than none",
    ),
    ("SpaceToDepth", (np.zeros((1, 3, 2, 1), np.float32),), {"T": F32, "block_size": 2}, "3 x 2"),
    ("DepthToSpace", (X,), {"T": F32, "block_size": 2}, "four dimensions"),
    (
        "CheckNumerics",
        (np.float32([np.nan, np.inf]),),
        {"T": F32, "message": b"so"},
        "so : tensor has Inf and NaN values",
    ),
    ("Assert", (np.bool_(False), X), {"T": [F32], "summarize": 2}, r"failed: \[0\.0 1\.0\.\.\.\]"),
]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"), REFUSED, ids=[case[0] for case in REFUSED]
)
def test_bad_values_are_refused_in_words(
    op: str, inputs: tuple[Any, ...], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, OperatorError), match=message):
        run(op, *inputs, out=(), **attrs)


UNSUPPORTED: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("Round", (ints(1),), {"T": I32}, "Round of INT32, expected BFLOAT16 or"),
    ("Cast", (ints(1),), {"SrcT": I32, "DstT": DataType.QINT8}, "Cast of INT32 to QINT8"),
    ("Split", (np.int32(0), X), {"T": F32, "num_split": 0}, "'num_split' is 0"),
    ("StridedSlice", (X, *[ints(0, 0)] * 3), {"T": F32, "ellipsis_mask": 3}, "expected a single"),
    ("OneHot", (ints(1), np.int32(3), X, X), {"T": F32, "axis": -2}, "'axis' is -2"),
    ("DepthToSpace", (X,), {"T": F32, "block_size": 1}, "'block_size' is 1"),
    ("SpaceToDepth", (X,), {"T": F32, "block_size": 2, "data_format": b"NCHW"}, "'NCHW'"),
    ("MirrorPad", (X, X), {"T": F32, "mode": b"EDGE"}, "'REFLECT' or 'SYMMETRIC'"),
    ("Bucketize", (X,), {"T": F32, "boundaries": [2.0, 1.0]}, "not sorted"),
    ("Complex", (X, X), {"T": F32, "Tout": DataType.COMPLEX128}, "COMPLEX128 of FLOAT32"),
    ("Const", (), {"dtype": F32, "value": b"no"}, "expected a tensor"),
    ("PrintV2", (X,), {"output_stream": b"file:///etc/passwd"}, "'log.error.' or"),
]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"), UNSUPPORTED, ids=[case[0] for case in UNSUPPORTED]
)
def test_what_cannot_run_is_said_before_it_runs(
    op: str, inputs: tuple[Any, ...], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(Unsupported, match=message):
        run(op, *inputs, out=(), **attrs)


def test_print_logs_the_first_calls_and_gives_its_input(caplog: pytest.LogCaptureFixture) -> None:
    case = flex_cases.one("Print", X, X[0], T=F32, U=[F32], message=b"x is ", first_n=1)
    (result,) = flex_cases.run(case, NumpyExecutor())
    assert (result == X).all()
    assert caplog.messages == ["x is [0.0 1.0 2.0]"]


def test_print_v2_logs_its_text(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        run("PrintV2", flex_cases.strings(b"hello"), out=(), output_stream=b"log(info)")
    assert caplog.messages == ["hello"]


def test_timestamp_is_the_time_now() -> None:
    before = time.time()
    (now,) = run("Timestamp", out=TensorType.FLOAT64)
    assert now.dtype == np.float64
    assert before <= now <= time.time()


@pytest.mark.parametrize("op", ["Inv", "Reciprocal"])
def test_a_second_input_is_no_place_for_the_result(op: str) -> None:
    given = X.copy()
    with pytest.raises(TypeError, match="positional arguments"):
        run(op, X, given, out=(), T=F32)
    assert (given == X).all()


def test_operators_leave_their_inputs_as_they_are() -> None:
    executor = NumpyExecutor()
    for name, case in list(flex_cases.all_cases()):
        inputs = [array.copy() for array in case.inputs]
        for array in inputs:
            array.flags.writeable = False
        if "Regex" in name and not HAS_RE2:
            continue
        try:
            flex_cases.run(dataclasses.replace(case, inputs=inputs), executor)
        except ValueError as error:
            pytest.fail(f"{name}: {error}")
