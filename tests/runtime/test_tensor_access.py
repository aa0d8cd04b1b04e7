"""Reading tensors as the official Python interpreter does."""

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as OfficialInterpreter

from delegraph import Interpreter
from delegraph.schema.options import StridedSliceOptions
from delegraph.testing import constant
from delegraph.testing.operator_case import fed, texts
from support.agreement import model_and_arrays


def first_element(values):
    """Return the model that takes the first element of a vector."""
    places = [constant(np.int32([i])) for i in (0, 1, 1)]
    options = StridedSliceOptions(shrink_axis_mask=1)
    x = fed(values)
    model, _ = model_and_arrays(
        "STRIDED_SLICE", [x, *places], [x.definition.type.name], options, version=5
    )
    return model


@pytest.mark.parametrize("values", [texts(b"flow\0", b""), np.float32([3, 4])], ids=["text", "f4"])
@pytest.mark.parametrize("interpreter_class", [Interpreter, OfficialInterpreter])
def test_a_string_on_its_own_is_an_array_and_a_number_is_not(interpreter_class, values):
    interpreter = interpreter_class(model_content=first_element(values))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
    interpreter.invoke()
    y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert isinstance(y, np.ndarray) == (values.dtype == object)
    assert np.shape(y) == ()
    assert np.asarray(y, values.dtype).item() == values[0]


def test_tensors_of_a_subgraph_may_be_lent_other_memory():
    model, (x,) = model_and_arrays("NEG", [fed(np.float32([3, 4]))], ["FLOAT32"])
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    subgraph, y = interpreter.subgraph(), np.empty(2, np.float32)
    subgraph.tensors[subgraph.inputs[0]].data = x
    subgraph.tensors[subgraph.outputs[0]].data = y
    interpreter.invoke()
    assert y.tolist() == [-3, -4]
    assert subgraph.readable(subgraph.outputs[0]).data is y


@pytest.mark.parametrize("index", [-1, 1])
def test_a_subgraph_that_is_not_there_is_an_error(index):
    interpreter = Interpreter(model_content=first_element(np.float32([1])))
    with pytest.raises(ValueError, match=f"out of range: {index} for the model, which has 1 sub"):
        interpreter.subgraph(index)
