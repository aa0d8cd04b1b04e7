"""Declarations of tensors and operators, which are made when one is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, TensorType
from delegraph.errors import ArgumentError, MalformedModelError
from delegraph.graph import TensorSpec, parse_model
from delegraph.graph.model import OperatorSpec, Specs, column_of, rows_of
from delegraph.graph.sparsity import DimensionMetadata, Sparsity
from delegraph.graph.strings import encode_strings
from delegraph.testing import graph_model, tensor

NODES = [("SIN", f"t{i}", f"t{i + 1}") for i in range(20)]
MODEL = graph_model(
    NODES, inputs="t0", outputs="t20", tensors={f"t{i}": tensor((1,)) for i in range(21)}
)


def test_each_declaration_is_one_object_with_its_index() -> None:
    operators = parse_model(MODEL).subgraphs[0].operators
    assert operators[3] is operators[3]
    assert [operator.index for operator in operators] == list(range(20))
    assert operators[-2:] == tuple(operators)[18:]


def test_columns_and_rows_are_those_of_the_declarations() -> None:
    operators = parse_model(MODEL).subgraphs[0].operators
    for given in (operators, tuple(operators)):
        assert [OperatorSpec(*row).outputs for row in rows_of(given)] == [
            operator.outputs for operator in operators
        ]
        assert list(column_of(given, "name")) == ["SIN"] * 20


def test_running_a_model_makes_no_declaration() -> None:
    with Interpreter(model_content=MODEL, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        interpreter.invoke()
        spec = interpreter.session.subgraphs[0].spec
        for specs in (spec.tensors, spec.operators):
            assert isinstance(specs, Specs)
            assert specs.made is None


# -- arrays of constants -----------------------------------------------------------------------


def spec(type: TensorType, shape: tuple[int, ...], data: Any, **more: Any) -> TensorSpec:
    raw = np.frombuffer(np.asarray(data).tobytes(), np.uint8)
    return TensorSpec(3, "weight", type, shape, shape, raw, **more)


ROW_STARTS = np.array([0, 1, 2], np.int32)
DIAGONAL = Sparsity(
    (0, 1), None, (DimensionMetadata(2), DimensionMetadata(0, ROW_STARTS, ROW_STARTS[:2]))
)


@pytest.mark.parametrize(
    ("given", "values", "dtype"),
    [
        (spec(TensorType.FLOAT32, (2, 1), np.float32([1, 2])), [[1], [2]], "float32"),
        (spec(TensorType.FLOAT16, (2,), np.float16([1, 2])), [1, 2], "float16"),
        (spec(TensorType.BFLOAT16, (1,), np.uint16([0x3F80])), [1], "bfloat16"),
        (spec(TensorType.INT4, (3,), np.uint8([0x2F, 0x08])), [-1, 2, -8], "int8"),
        (spec(TensorType.UINT4, (1,), np.uint8([0x2F])), [15], "uint8"),
        (spec(TensorType.INT8, (0, 2), np.int8([1])), np.empty((0, 2)), "int8"),
        (
            spec(TensorType.INT8, (2, 2), np.int8([5, 6]), sparsity=DIAGONAL),
            [[5, 0], [0, 6]],
            "int8",
        ),
        (
            spec(TensorType.INT4, (2, 2), np.uint8([0x65]), sparsity=DIAGONAL),
            [[5, 0], [0, 6]],
            "int8",
        ),
    ],
    ids=lambda given: given.type.name if isinstance(given, TensorSpec) else "",
)
def test_array_of_a_constant_is_dense_typed_and_read_only(
    given: TensorSpec, values: Any, dtype: str
) -> None:
    array = given.array()
    np.testing.assert_array_equal(array.astype(np.float64), values)
    assert array.dtype == dtype
    assert not array.flags.writeable


def test_array_of_plain_values_copies_nothing() -> None:
    given = spec(TensorType.FLOAT32, (2,), np.float32([1, 2]))
    assert given.data is not None
    assert np.shares_memory(given.array(), given.data)


def test_array_of_strings_has_their_bytes() -> None:
    given = spec(TensorType.STRING, (2,), encode_strings(np.array([b"a", b"bc"], object)))
    assert given.array().tolist() == [b"a", b"bc"]


def test_what_has_no_array_is_named() -> None:
    computed = TensorSpec(3, "y", TensorType.FLOAT32, (), ())
    with pytest.raises(ArgumentError, match=r"tensor 3 \('y'\) is computed, not constant"):
        computed.array()
    with pytest.raises(ArgumentError, match=r"tensor 3 \('weight'\) is RESOURCE"):
        spec(TensorType.RESOURCE, (), b"").array()


@pytest.mark.parametrize(
    ("shape", "levels"),
    [
        ((2, 2), (DimensionMetadata(2), DimensionMetadata(2))),
        ((2**30, 2), (DimensionMetadata(2**30), DimensionMetadata(2))),
        ((2, 1), DIAGONAL.dim_metadata),
    ],
    ids=["too few values", "a huge dimension", "an index outside"],
)
def test_damaged_sparse_constant_is_refused_before_it_takes_memory(
    shape: tuple[int, ...], levels: tuple[DimensionMetadata, ...]
) -> None:
    damaged = spec(TensorType.INT8, shape, np.int8([5, 6]), sparsity=Sparsity((0, 1), None, levels))
    with pytest.raises(MalformedModelError, match=r"tensor 3 \('weight'\): "):
        damaged.array()
