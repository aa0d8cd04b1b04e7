"""VAR_HANDLE, ASSIGN_VARIABLE and READ_VARIABLE."""

import numpy as np
import pytest

from delegraph.schema.enums import TensorType
from delegraph.schema.options import HashtableOptions, VarHandleOptions
from delegraph.testing import constant, delegraph_outputs, tensor
from delegraph.testing.operator_case import texts
from delegraph.testing.subgraphs import Graph, Op, model_of
from support.official import official_outputs

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def variable_model(shape, *ops):
    """Return a model that makes a handle, runs *ops* on (handle, x, y) and returns y."""
    handle, x, y = tensor((), "RESOURCE"), tensor((2, 3)), tensor(shape)
    operands = {"ASSIGN_VARIABLE": ([handle, x], []), "READ_VARIABLE": ([handle], [y])}
    name = VarHandleOptions(container="c", shared_name="v")
    steps = [Op("VAR_HANDLE", [], [handle], name), *(Op(op, *operands[op]) for op in ops)]
    return model_of(Graph([x], [y], steps))


@pytest.mark.parametrize("shape", [(2, 3), ()])
def test_a_variable_gives_back_what_was_assigned(shape):
    model = variable_model(shape, "ASSIGN_VARIABLE", "READ_VARIABLE")
    for outputs in (delegraph_outputs(model, [X]), official_outputs(model, [X])):
        np.testing.assert_array_equal(outputs[0], X)


def test_reading_before_assigning_is_refused():
    model = variable_model((2, 3), "READ_VARIABLE")
    with pytest.raises(RuntimeError):
        official_outputs(model, [X])
    with pytest.raises(RuntimeError, match="read before it is assigned"):
        delegraph_outputs(model, [X])


def test_reading_into_another_size_is_refused():
    model = variable_model((2, 2), "ASSIGN_VARIABLE", "READ_VARIABLE")
    with pytest.raises(RuntimeError, match=r"variable is \[2, 3\], expected \[2, 2\]"):
        delegraph_outputs(model, [X])


def test_a_handle_of_another_type_is_refused():
    x, y = tensor((1,)), tensor((1,))
    model = model_of(Graph([x], [y], [Op("READ_VARIABLE", [x], [y])]))
    with pytest.raises(RuntimeError, match="handle is FLOAT32, expected RESOURCE"):
        delegraph_outputs(model, [np.zeros(1, np.float32)])


def test_a_table_is_no_variable():
    handle, x, y = tensor((1,), "RESOURCE"), tensor((2, 3)), tensor((2, 3))
    options = HashtableOptions(key_dtype=TensorType.STRING, value_dtype=TensorType.INT64)
    keys, values = constant(texts(b"a"), "STRING"), constant(np.int64([1]))
    steps = [
        Op("HASHTABLE", [], [handle], options),
        Op("HASHTABLE_IMPORT", [handle, keys, values], []),
        Op("READ_VARIABLE", [handle], [y]),
    ]
    with pytest.raises(RuntimeError, match="is a table, expected a variable"):
        delegraph_outputs(model_of(Graph([x], [y], steps)), [X])
