"""Run a model: a handwritten digit in, ten scores out."""

from pathlib import Path

import numpy as np

from delegraph import Interpreter

MODELS = Path(__file__).parents[1] / "demo" / "models"
PIXEL = " .:+#"

with np.load(MODELS / "digits_test.npz") as test:
    image = test["images"][0]  # [8, 8], 0 (paper) to 16 (ink)
    label = test["labels"][0]
for row in image:
    print("".join(PIXEL[value // 4] * 2 for value in row))

with Interpreter(MODELS / "digits_float.tflite") as interpreter:
    interpreter.allocate_tensors()
    (pixels,) = interpreter.get_input_details()
    (scores,) = interpreter.get_output_details()
    interpreter.set_tensor(pixels["index"], np.float32(image / 16).reshape(pixels["shape"]))
    interpreter.invoke()
    answer = interpreter.get_tensor(scores["index"]).argmax()

print(f"The model says {answer}, the label says {label}.")
