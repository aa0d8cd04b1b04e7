"""Lists of tables read by column: the same records as read one by one, made when asked for."""

from __future__ import annotations

import numpy as np

from delegraph.schema.enums import BuiltinOperator, TensorType
from delegraph.schema.options import AddOptions
from delegraph.schema.reader import read_model
from delegraph.schema.table import Columns
from delegraph.schema.tables import Buffer, Model, Operator, SubGraph, Tensor, operator_code
from delegraph.schema.writer import write_model


def chain(length: int) -> Model:
    """Return a model of *length* tensors, each but the first the sum of the one before."""
    tensors = [Tensor(shape=(1, i), type=TensorType.FLOAT32, name=f"t{i}") for i in range(length)]
    operators = [
        Operator(inputs=(i, i), outputs=(i + 1,), builtin_options=AddOptions())
        for i in range(length - 1)
    ]
    graph = SubGraph(tensors=tuple(tensors), inputs=(0,), operators=tuple(operators))
    codes = (operator_code(BuiltinOperator.ADD),)
    return Model(version=3, operator_codes=codes, subgraphs=(graph,), buffers=(Buffer(),))


def read(length: int) -> tuple[SubGraph, SubGraph]:
    """Return the subgraph of a chain, read by column and record by record."""
    content = np.frombuffer(write_model(chain(length)), np.uint8)
    (by_column,) = read_model(content, by_column=True).subgraphs or ()
    (by_record,) = read_model(content).subgraphs or ()
    return by_column, by_record


def test_records_are_those_of_a_list_of_records() -> None:
    by_column, by_record = read(20)
    for found, expected in (
        (by_column.tensors, by_record.tensors),
        (by_column.operators, by_record.operators),
    ):
        assert isinstance(found, Columns)
        assert expected is not None
        assert tuple(found) == expected
        assert tuple(found[3:5]) == expected[3:5]
        assert found[-1] == expected[-1]


def test_a_short_list_is_one_of_records() -> None:
    by_column, by_record = read(3)
    assert isinstance(by_column.tensors, tuple)
    assert by_column == by_record


def test_equal_options_are_one_object() -> None:
    _, graph = read(20)
    assert len({id(operator.builtin_options) for operator in graph.operators or ()}) == 1
