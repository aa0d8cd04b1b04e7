"""Data that would crash the NumPy executor, or make silent garbage, is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flex_cases
from delegraph import TensorType
from delegraph.errors import OperatorError
from delegraph_flex.data_types import DataType
from delegraph_flex.flex_node import Unsupported
from delegraph_flex.numpy_executor.executor import NumpyExecutor
from flex_cases import Case, one, strings

FLOAT, INT, LONG = DataType.FLOAT32, DataType.INT32, DataType.INT64
GATHER = {"Tparams": FLOAT, "Tindices": LONG}
X = np.arange(12, dtype=np.float32).reshape(4, 3)
IDS = {"T": FLOAT, "Tindices": LONG}
SPARSE = np.array([[0, 0], [3, 1]]), X[0, :2], np.array([4, 3])
LINE, TURNED = np.array([4, 3, 5]), np.array([4, -3])
TALLER = np.array([4, 3]), np.array([5, 3])
LONGEST = np.array([1 << 62, 1])
I64, F32 = TensorType.INT64, TensorType.FLOAT32


def _joined(*parts: Any, axis: int = 0) -> Case:
    values = (SPARSE[1], SPARSE[1][: len(parts[1])])
    return one(
        "SparseConcat", *parts[:2], *values, *parts[2:], T=FLOAT, N=2, concat_dim=axis,
        out=(I64, F32, I64),
    )  # fmt: skip


def _added(*parts: Any, threshold: Any = 0) -> Case:
    return one(
        "SparseAdd", *parts, np.asarray(threshold, np.float32), T=FLOAT, Treal=FLOAT,
        out=(I64, F32, I64),
    )  # fmt: skip


def _softmax(*parts: Any) -> Case:
    return one("SparseSoftmax", *parts, T=FLOAT, out=F32)


def _csv(record: bytes, *defaults: Any, **attrs: Any) -> Case:
    kinds, types = [INT] * len(defaults), (TensorType.INT32,) * len(defaults)
    arrays = [np.array(default, np.int32) for default in defaults]
    return one("DecodeCSV", strings([record]), *arrays, OUT_TYPE=kinds, out=types, **attrs)


def _partition(kinds: list[bytes], *parts: Any, shape: Any = -1) -> Case:
    return one(
        "RaggedTensorToTensor", np.asarray(shape), X, X[0, 0], *map(np.asarray, parts), T=FLOAT,
        Tindex=LONG, Tshape=LONG, num_row_partition_tensors=len(parts),
        row_partition_types=kinds, out=F32,
    )  # fmt: skip


REFUSED: dict[str, Case] = {
    r"-1 is not in \[0, 4\)": one("Gather", X, np.array([2, -1]), **GATHER),
    r"indices: 4 is not in \[0, 4\)": one(
        "GatherV2", X, np.array([4]), np.array(0), **GATHER, Taxis=LONG
    ),
    "axis is 2, expected it": one(
        "GatherV2", X, np.array([0]), np.array(2), **GATHER, Taxis=LONG
    ),
    "differ in their first 1": one(
        "GatherV2", X, np.zeros((3, 1), int), np.array(1), **GATHER, Taxis=LONG, batch_dims=1
    ),
    r"index \[4, 0\] is not inside shape \[4, 3\]": one(
        "GatherNd", X, np.array([[1, 2], [4, 0]]), **GATHER
    ),
    "cannot index into 2": one("GatherNd", X, np.zeros((1, 3), int), **GATHER),
    r"index \[-1\] is not inside": one(
        "TensorScatterAdd", X, np.array([[-1]]), X[:1], T=FLOAT, Tindices=LONG
    ),
    r"updates have shape \[2, 3\], expected \[1, 3\]": one(
        "TensorScatterUpdate", X, np.array([[0]]), X[:2], T=FLOAT, Tindices=LONG
    ),
    "more than the limit": one(
        "ScatterNd", np.array([[0, 0]]), X[0, :1], np.array([1 << 40, 9]), T=FLOAT, Tindices=LONG,
        out=F32,
    ),
    "occurs twice": one("InvertPermutation", np.array([1, 1, 0]), T=LONG),
    "not increasing": one("SegmentSum", X, np.array([0, 2, 1, 3]), **IDS),
    "one for each row": one("SegmentMax", X, np.array([0, 1]), **IDS),
    r"segment ids: 7 is not in \[0, 3\)": one(
        "UnsortedSegmentSum", X, np.array([0, 7, 1, 1]), np.array(3), **IDS, Tnumsegments=LONG
    ),
    "segment ids reach 5, expected less than 3": one(
        "SparseSegmentSumWithNumSegments", X, np.array([0, 1]), np.array([1, 5]), np.array(3),
        T=FLOAT, Tidx=LONG, Tsegmentids=LONG, Tnumsegments=LONG,
    ),
    "label 'j' has dimensions of 3 and 1": one(
        "Einsum", X, X[:1], equation=b"ij,jk->ik", N=2, T=FLOAT
    ),
    "'ij' is given 3 dimensions": one("Einsum", X[None], equation=b"ij->ji", N=1, T=FLOAT),
    "Singular matrix": one("MatrixInverse", np.ones((2, 2), np.float32), adjoint=False, T=FLOAT),
    "expected square matrices": one("Cholesky", X, T=FLOAT),
    "it has no eigenvalues": one(
        "SelfAdjointEigV2", X[:3] * np.float32(np.nan), compute_v=True, T=FLOAT, out=(F32,) * 2
    ),
    "a band of 9 below": one(
        "MatrixBandPart", X, np.array(9), np.array(0), T=FLOAT, Tindex=LONG
    ),
    "diagonal 5 is not inside": one(
        "MatrixDiagPartV3", X, np.array(5, np.int32), X[0, 0], T=FLOAT, align=b"RIGHT_LEFT"
    ),
    "does not have diagonals 1 to 1 of length 3": one(
        "MatrixDiagV3", X[0], np.int32(1), np.int32(9), np.int32(9), X[0, 0], T=FLOAT,
        align=b"RIGHT_LEFT",
    ),
    "expected at least": one(
        "RFFT", X, np.array([5], np.int32), Treal=FLOAT, Tcomplex=DataType.COMPLEX64,
        out=TensorType.COMPLEX64,
    ),
    "expected no negative number": one(
        "DenseBincount", np.array([-1]), np.array(3), X[:0, 0], T=FLOAT, Tidx=LONG,
        binary_output=False, out=F32,
    ),
    "values have NaN": one(
        "HistogramFixedWidth", X * np.float32(np.nan), X[0, :2], np.int32(3), T=FLOAT, dtype=INT,
        out=TensorType.INT32,
    ),
    "the 4 largest of an input": one(
        "TopKV2", X, np.int32(4), T=FLOAT, Tk=INT, index_type=INT, sorted=True,
        out=(F32, TensorType.INT32),
    ),
    r"index \[4, 0\] is not inside \[4, 3\]": one(
        "SparseToDense", np.array([[4, 0]]), SPARSE[2], X[0, :1], X[0, 0], T=FLOAT, Tindices=LONG,
        validate_indices=True, out=F32,
    ),
    "out of order, or repeated": one(
        "SparseToDense", SPARSE[0][::-1], SPARSE[2], SPARSE[1], X[0, 0], T=FLOAT, Tindices=LONG,
        validate_indices=True, out=F32,
    ),
    r"12 elements cannot have shape \[5, -1\]": one(
        "SparseReshape", SPARSE[0], SPARSE[2], np.array([5, -1]), out=(I64, I64)
    ),
    r"rows: 9 is not in \[0, 4\)": one(
        "SparseFillEmptyRows", SPARSE[0] * 3, *SPARSE[1:], X[0, 0], T=FLOAT,
        out=(I64, F32, TensorType.BOOL, I64),
    ),
    "differ in more than dimension 1": _joined(SPARSE[0], SPARSE[0], *TALLER, axis=1),
    "concat_dim is 2, expected": _joined(SPARSE[0], SPARSE[0], SPARSE[2], SPARSE[2], axis=2),
    "and 1 values of a tensor with 3 dim": _joined(SPARSE[0], SPARSE[0][:1], SPARSE[2], LINE),
    r"\[-4, 3\], expected dimensions from 0": _joined(SPARSE[0], SPARSE[0], SPARSE[2], -TURNED),
    "of less than 2.63 elements": _joined(SPARSE[0], SPARSE[0], SPARSE[2] << 40, SPARSE[2] << 40),
    "is 9223372036854775808, more than 64 bits": _joined(SPARSE[0], SPARSE[0], *[LONGEST] * 2),
    "expected the same, not": _added(*SPARSE, *SPARSE[:2], SPARSE[2] + 1),
    "2 values of a tensor with 1 dim": _added(*SPARSE[:2], LINE[:1], *SPARSE),
    "thresh has shape": _added(*SPARSE, *SPARSE, threshold=[0]),
    r"values has shape \[1, 2\]": _added(SPARSE[0], SPARSE[1][None], SPARSE[2], *SPARSE),
    "expected at least 2 dimensions": _softmax(SPARSE[0][:, :1], SPARSE[1], SPARSE[2][:1]),
    r"shape is \[-4, 3\]": _softmax(*SPARSE[:2], -TURNED),
    "record 0 has 1 fields, expected 2": _csv(b"1", 0, 0),
    "record 0 has 0 fields, expected 1": _csv(b"\n", 0),
    "field 1 of record 0 is missing": _csv(b"1,", 0, []),
    "field 0 of record 0 is no int32: 2147483648": _csv(b"2147483648", 0),
    "is no int32: 1_0": _csv(b"1_0", 0),
    r"default of field 0 is \(2,\)": _csv(b"1", [1, 2]),
    r"default of field 0 is \(1, 1\)": _csv(b"1", [[1]]),
    "has quotes or line ends, and no quotes": _csv(b'1"', 0),
    "is not written twice": _csv(b'"1"x', 0),
    "does not end": _csv(b'"1""', 0),
    "a delta is zero": one(
        "RaggedRange", np.array([1]), np.array([4]), np.array([0]), T=LONG, Tsplits=LONG,
        out=(I64, I64),
    ),
    "row splits decrease": one(
        "RaggedGather", np.array([0, 5, 4]), X, np.array([0]), Tvalues=FLOAT, Tindices=LONG,
        Tsplits=LONG, PARAMS_RAGGED_RANK=1, OUTPUT_RAGGED_RANK=1, out=(I64, F32),
    ),
    "row splits .* of 4 values": one(
        "RaggedTensorToSparse", np.array([0, 99]), X, T=FLOAT, Tsplits=LONG, RAGGED_RANK=1,
        out=(I64, F32, I64),
    ),
    "row partitions of 5 values": _partition([b"ROW_SPLITS"], [0, 5]),
    r"row partition: 9 is not in \[0, 2\)": _partition(
        [b"FIRST_DIM_SIZE", b"VALUE_ROWIDS"], 2, [0, 0, 1, 9]
    ),
    "for a ragged tensor of 3 dimensions": _partition([b"ROW_SPLITS"], [0, 4], shape=[2, 2]),
    "partitions: 2 is not in": one(
        "DynamicPartition", X, np.array([0, 1, 2, 0], np.int32), num_partitions=2, T=FLOAT,
        out=(F32, F32),
    ),
}  # fmt: skip
"""What the message says, and the case."""


@pytest.mark.parametrize("message", REFUSED)
def test_bad_data_is_refused_with_its_values(message: str) -> None:
    with pytest.raises((ValueError, OperatorError), match=message):
        flex_cases.run(REFUSED[message], NumpyExecutor())


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (one("Einsum", X, equation=b"ij", N=1, T=FLOAT), "expected 'term->result'"),
        (one("Einsum", X, equation=b"ij->ik", N=1, T=FLOAT), "labels that no operand has"),
        (one("Einsum", X, equation=b"i j->ij", N=1, T=FLOAT), "not of letters"),
        (one("GatherNd", X, X, **GATHER, bad_indices_policy=b"CLAMP"), "'CLAMP', expected"),
        (_csv(b"1", 0, field_delim=b"::"), "field_delim is b'::', expected one byte"),
        (_csv(b"1", 0, select_cols=[0, 1]), "select_cols has 2, OUT_TYPE 1"),
        (_csv(b"1", 0, 0, select_cols=[1, 1]), "expected rising numbers from 0"),
        (_csv(b"1", 0, 0, select_cols=[-1, 1]), "expected rising numbers from 0"),
        (one("DecodeCSV", strings(b""), np.uint8(0), OUT_TYPE=[DataType.UINT8]), "CSV to UINT8"),
        (one("SparseConcat", *SPARSE, T=FLOAT, N=1, concat_dim=0), "N is 1, expected at least 2"),
        (_partition([b"VALUE_ROWIDS"], [0, 0, 1, 1]), "leave the number of rows open"),
        (_partition([b"ROW_LIMITS"], [0, 4]), "row partition 'ROW_LIMITS'"),
    ],
)
def test_attributes_that_mean_nothing_are_refused_before_running(case: Case, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        flex_cases.run(case, NumpyExecutor())
