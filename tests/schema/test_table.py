from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from delegraph.schema.enums import BuiltinOperator, Padding, TensorType
from delegraph.schema.options import AddOptions, Conv2DOptions, PackOptions, PadOptions
from delegraph.schema.reader import read_model
from delegraph.schema.table import Columns
from delegraph.schema.tables import Buffer, Model, Operator, SubGraph, Tensor, operator_code
from delegraph.schema.writer import write_model


def test_fields_that_are_not_given_have_their_defaults() -> None:
    options = Conv2DOptions(stride_w=2)
    assert (options.stride_w, options.stride_h, options.dilation_w_factor) == (2, 0, 1)
    assert options.padding is Padding.SAME


def test_an_unknown_field_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(TypeError, match="PackOptions has no field 'size'; it has axis, values"):
        PackOptions(size=1)  # type: ignore[call-arg]  # the mistake under test


def test_a_record_cannot_be_changed() -> None:
    options = PackOptions(axis=1)
    with pytest.raises(AttributeError):
        options.axis = 2  # type: ignore[misc]  # the mistake under test
    with pytest.raises(AttributeError):
        options.other = 2  # type: ignore[attr-defined]  # the mistake under test


def test_replace_changes_only_what_is_given() -> None:
    options = PackOptions(values_count=3, axis=1)
    assert options.replace(axis=2) == PackOptions(values_count=3, axis=2)


def test_records_of_different_tables_differ() -> None:
    assert PadOptions() != AddOptions()
    assert Conv2DOptions() != tuple(Conv2DOptions())
    assert Model(buffers=(Buffer(),)) != Model(buffers=((None, 0, 0),))  # type: ignore[arg-type]


def test_arrays_are_compared_by_dtype_and_value() -> None:
    one = Buffer(data=np.array([1, 2], np.uint8))
    assert one == Buffer(data=np.array([1, 2], np.uint8))
    assert one != Buffer(data=np.array([1, 3], np.uint8))
    assert one != Buffer(data=np.array([1, 2], np.int8))  # type: ignore[arg-type]
    assert one != Buffer()


def test_equal_options_have_equal_hashes() -> None:
    assert len({PackOptions(axis=1), PackOptions(axis=1), PackOptions(axis=2)}) == 2


def test_a_record_without_fields_is_not_falsy() -> None:
    assert PadOptions()


def test_repr_shows_what_is_not_default() -> None:
    record = Tensor(shape=(1, 2), name="x")
    assert repr(record) == "Tensor(shape=(1, 2), name='x')"
    assert repr(PadOptions()) == "PadOptions()"


def test_records_can_be_copied_and_pickled() -> None:
    model = Model(version=3, buffers=(Buffer(data=np.array([1], np.uint8)),))
    assert pickle.loads(pickle.dumps(model)) == model
    assert copy.deepcopy(model) == model


def test_records_match_by_position() -> None:
    match PackOptions(values_count=3, axis=1):
        case PackOptions(count, axis):
            assert (count, axis) == (3, 1)


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
