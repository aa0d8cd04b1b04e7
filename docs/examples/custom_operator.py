"""Run a custom operator that is a Python function."""

import numpy as np

from delegraph import Interpreter, custom_op
from delegraph.testing import one_op_model, tensor


@custom_op("Fahrenheit")
def fahrenheit(celsius):
    return celsius * np.float32(1.8) + np.float32(32)


# A model with one node. Yours comes from a converter, with the operator's name as its custom code.
model = one_op_model("Fahrenheit", [tensor((3,))], [tensor((3,))])

with Interpreter(model_content=model) as interpreter:
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.float32([-40, 0, 100]))
    interpreter.invoke()
    print(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
