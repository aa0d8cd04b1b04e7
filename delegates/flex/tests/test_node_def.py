"""NodeDefs and the custom options that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st

from delegraph_flex.custom_options import read_custom_options, write_custom_options
from delegraph_flex.data_types import DataType
from delegraph_flex.messages import NodeDefMessage
from delegraph_flex.node_def import Function, NodeDef, NodeDefError

SHAPES = st.none() | st.lists(st.integers(-1, 9), max_size=4).map(tuple)
INTEGERS = st.integers(-(1 << 63), (1 << 63) - 1)
FLOATS = st.floats(width=32, allow_nan=False)
SCALARS = st.one_of(
    st.binary(max_size=300), INTEGERS, FLOATS, st.booleans(), st.sampled_from(DataType), SHAPES
)
LISTS = st.one_of(
    *(
        st.lists(of, max_size=5)
        for of in (st.binary(), INTEGERS, FLOATS, st.booleans(), st.sampled_from(DataType), SHAPES)
    )
)
ATTRS = st.dictionaries(st.text(min_size=1, max_size=8), SCALARS | LISTS, max_size=6)


@given(st.text(min_size=1, max_size=300).filter(lambda t: "\0" not in t), ATTRS, st.integers(0, 9))
def test_what_is_written_is_read(op: str, attrs: dict[str, Any], inputs: int) -> None:
    node_def = NodeDef(op, attrs, inputs)
    found = read_custom_options(write_custom_options(node_def))
    assert found == node_def
    assert {k: type(v) for k, v in found.attrs.items()} == {k: type(v) for k, v in attrs.items()}


def test_the_bytes_are_those_that_the_converter_writes() -> None:
    options = write_custom_options(NodeDef("Erf", {"T": DataType.FLOAT32}, 1))
    assert options[:5] == b"\x03Erf\0"
    assert options[-5:] == bytes.fromhex("1414042801")
    found = flexbuffers.GetRoot(options).AsVector
    assert found[0].AsString == "Erf"
    assert found[1].AsStringBytes.hex() == "12034572661a002a070a015412023001"


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.array(1.5, np.float64),
        np.array([[b"a"], [b"\xff"]], object),
        np.zeros((0, 3), np.float16),
        np.array([True, False]),
    ],
)
def test_constants_are_read_as_written(array: Any) -> None:
    found = NodeDef.parse(NodeDef("Const", {"value": array}).serialise()).attrs["value"]
    assert isinstance(found, np.ndarray)
    assert (found.dtype, found.shape, found.tolist()) == (array.dtype, array.shape, array.tolist())


def test_the_last_value_of_a_listed_constant_stands_for_the_rest() -> None:
    message = NodeDefMessage(op="Const")
    tensor = message.attr["value"].tensor
    tensor.dtype = DataType.FLOAT32
    tensor.float_val.extend([1.0, 2.0])
    tensor.tensor_shape.dim.add(size=4)
    found = NodeDef.parse(message.SerializeToString()).attrs["value"]
    np.testing.assert_array_equal(found, np.array([1, 2, 2, 2], np.float32))


def test_functions_have_a_name_and_attributes() -> None:
    function = Function("body", {"T": DataType.INT8, "n": 3})
    assert NodeDef.parse(NodeDef("Map", {"f": function}).serialise()).attrs["f"] == function


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m.ClearField("op"), "the NodeDef names no operator"),
        (lambda m: setattr(m.attr["T"], "type", 99), "attribute 'T': 99 is not a valid DataType"),
        (lambda m: m.attr["T"].SetInParent(), "attribute 'T' has no value of a known kind"),
        (lambda m: setattr(m.attr["T"], "placeholder", "x"), "attribute 'T' is a placeholder"),
    ],
)
def test_what_no_node_def_can_hold_is_an_error_that_names_it(change: Any, reason: str) -> None:
    message = NodeDefMessage(op="Erf")
    change(message)
    with pytest.raises(NodeDefError, match=reason):
        NodeDef.parse(message.SerializeToString())


def test_a_constant_may_not_claim_more_memory_than_it_should() -> None:
    message = NodeDefMessage(op="Const")
    tensor = message.attr["value"].tensor
    tensor.dtype = DataType.FLOAT32
    tensor.float_val.append(1.0)
    for _ in range(4):
        tensor.tensor_shape.dim.add(size=1 << 20)
    with pytest.raises(NodeDefError, match=r"a tensor of .* bytes, limit"):
        NodeDef.parse(message.SerializeToString())


@pytest.mark.parametrize("value", [b"", b"\0", b"\1\2\3", bytes(flexbuffers.Dumps({"a": 1}))])
def test_options_that_are_no_vector_of_two_strings_are_refused(value: bytes) -> None:
    with pytest.raises(NodeDefError, match="custom options are no"):
        read_custom_options(value)


@pytest.mark.parametrize("items", [["Erf"], ["Erf", 1], ["Erf", "", 1], ["Erf", "", ""]])
def test_a_vector_of_anything_but_two_strings_is_refused(items: list[Any]) -> None:
    with pytest.raises(NodeDefError, match="no vector of two strings"):
        read_custom_options(bytes(flexbuffers.Dumps(items)))
