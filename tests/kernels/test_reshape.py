"""RESHAPE, SQUEEZE, EXPAND_DIMS, BITCAST against NumPy and the official interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import NodeError
from delegraph.kernels.reshape import stretched
from delegraph.schema import options as o
from delegraph.schema import read_model, write_model
from delegraph.schema.tables import Buffer
from delegraph.testing import constant, delegraph_outputs, graph_model, one_op_model, tensor
from delegraph.testing.operator_case import fed, texts
from support.agreement import assert_agrees, assert_both_refuse

VALUES = np.arange(12, dtype=np.float32).reshape(2, 6)


def ints(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize("shape", [(3, 4), (-1, 2), (2, -1, 1), (12,), (-1,)])
def test_reshape_keeps_the_order_of_elements(shape, given):
    (y,) = assert_agrees("RESHAPE", [fed(VALUES), given(ints(*shape))], ["FLOAT32"])
    np.testing.assert_array_equal(y, VALUES.reshape(shape))


@pytest.mark.parametrize("shape", [(5, -1), (-1, -1), (5,), (0, -1)])
def test_reshape_refuses_a_shape_of_another_size(shape, given):
    assert_both_refuse(
        "RESHAPE", [fed(VALUES), given(ints(*shape))], ["FLOAT32"], match="take the shape|one -1"
    )


@pytest.mark.parametrize(("x", "shape"), [(VALUES, (3, 4)), (VALUES[:1, :1], (0,))])
def test_reshape_takes_its_shape_from_the_options(x, shape):
    assert_agrees("RESHAPE", [fed(x)], ["FLOAT32"], o.ReshapeOptions(new_shape=ints(*shape)))


@pytest.mark.parametrize(
    ("wanted", "shape", "result"), [((3, -1), (0, 3), [3, 0]), ((0, -1), (0, 3), [0, 3])]
)
def test_reshape_of_nothing_keeps_what_it_can(wanted, shape, result):
    assert stretched(wanted, shape) == result


@pytest.mark.parametrize("type_", ["INT8", "FLOAT16", "INT64", "STRING"])
def test_reshape_refuses_elements_of_another_width_while_preparing(type_):
    model = one_op_model("RESHAPE", [tensor((2, 6)), constant(ints(3, 4))], [tensor((3, 4), type_)])
    interpreter = Interpreter(model_content=model)
    with pytest.raises(NodeError, match=f"output is {type_}, expected FLOAT32"):
        interpreter.allocate_tensors()


def test_reshape_reads_the_same_bytes_as_a_type_of_the_same_width():
    (y,) = assert_agrees("RESHAPE", [fed(VALUES), constant(ints(3, 4))], ["INT32"])
    np.testing.assert_array_equal(y, VALUES.reshape(3, 4).view(np.int32))


def test_reshape_of_a_constant_is_computed_while_preparing():
    assert_agrees("RESHAPE", [constant(VALUES), constant(ints(4, 3))], ["FLOAT32"])


def test_reshape_moves_strings_with_their_zero_bytes():
    words = texts(b"a", b"bc\0", b"", b"d")
    (y,) = assert_agrees("RESHAPE", [fed(words), constant(ints(2, -1))], ["STRING"])
    assert y.tolist() == [[b"a", b"bc\0"], [b"", b"d"]]


@pytest.mark.parametrize("axes", [(), (0,), (-1,), (0, 2)])
def test_squeeze_drops_the_dimensions_of_one(axes):
    x = VALUES.reshape(1, 12, 1)
    assert_agrees("SQUEEZE", [fed(x)], ["FLOAT32"], o.SqueezeOptions(squeeze_dims=ints(*axes)))


def test_squeeze_refuses_a_dimension_that_is_not_one():
    options = o.SqueezeOptions(squeeze_dims=ints(1))
    assert_both_refuse("SQUEEZE", [fed(VALUES)], ["FLOAT32"], options, match="not 1")


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_expand_dims_inserts_a_dimension(axis, given):
    inputs = [fed(VALUES), given(np.array(axis, np.int32))]
    (y,) = assert_agrees("EXPAND_DIMS", inputs, ["FLOAT32"])
    np.testing.assert_array_equal(y, np.expand_dims(VALUES, axis))


@pytest.mark.parametrize("axis", [3, -4])
def test_expand_dims_refuses_an_axis_outside(axis):
    inputs = [fed(VALUES), constant(np.array(axis, np.int32))]
    assert_both_refuse("EXPAND_DIMS", inputs, ["FLOAT32"], match="outside")


def test_of_an_axis_of_64_bits_the_lower_32_count():
    inputs = [fed(np.ones((2, 3), np.float32)), constant(np.int64(-(2**63) + 1))]
    (y,) = assert_agrees("EXPAND_DIMS", inputs, ["FLOAT32"])
    assert y.shape == (2, 1, 3)


@pytest.mark.parametrize(
    ("x", "type_"),
    [(VALUES, "INT32"), (VALUES, "UINT8"), (np.arange(8, dtype=np.uint8).reshape(2, 4), "FLOAT32")],
)
def test_bitcast_reads_the_same_bytes(x, type_):
    (y,) = assert_agrees("BITCAST", [fed(x)], [type_])
    assert y.tobytes() == x.tobytes()


def test_bitcast_refuses_too_few_bytes():
    x = np.zeros((2, 3), np.uint8)
    assert_both_refuse("BITCAST", [fed(x)], ["FLOAT32"], match="last dimension")


def test_expand_dims_of_int16_with_a_zero_point_is_refused():
    inputs = [fed(np.int16([1, 2]), scale=0.5, zero_point=3), constant(np.int32(0))]
    y = tensor((), "INT16", scale=0.5, zero_point=3)
    assert_both_refuse("EXPAND_DIMS", inputs, [y], match="zero point 3")


@pytest.mark.parametrize("op", ["RESHAPE", "EXPAND_DIMS"])
def test_bytes_beyond_the_elements_do_not_count(op: str) -> None:
    values = np.arange(-8, 7, dtype=np.int8)
    operand = constant(np.int32([3, 5] if op == "RESHAPE" else [0]))
    options = o.ReshapeOptions() if op == "RESHAPE" else o.ExpandDimsOptions()
    shape = (3, 5) if op == "RESHAPE" else (1, 15)
    model = graph_model(
        [(op, "x o", "y", options)],
        inputs="",
        outputs="y",
        tensors={"x": constant(values, "INT4"), "o": operand, "y": tensor(shape, "INT4")},
    )
    records = read_model(np.frombuffer(model, np.uint8))
    index = records.subgraphs[0].tensors[0].buffer
    longer = np.concatenate([records.buffers[index].data, np.zeros(20, np.uint8)])
    buffers = [Buffer(data=longer) if i == index else b for i, b in enumerate(records.buffers)]
    (found,) = delegraph_outputs(write_model(records.replace(buffers=tuple(buffers))), [])
    np.testing.assert_array_equal(found, values.reshape(shape))
