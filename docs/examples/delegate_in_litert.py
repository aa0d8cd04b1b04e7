"""Apply a delegate inside stock LiteRT, beside its XNNPACK (pip install ai-edge-litert)."""

from pathlib import Path

import numpy as np

from delegraph.native import LiteRtInterpreter

MODEL = Path(__file__).parents[1] / "demo" / "models" / "sines.tflite"

interpreter = LiteRtInterpreter(MODEL, delegates=["sin"])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.float32([2]))
interpreter.invoke()
print("f(2) =", interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])
print(interpreter.placement)
