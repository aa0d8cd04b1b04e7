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
