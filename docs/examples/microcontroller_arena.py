"""How large must the arena of a microcontroller be for a model? Then run it in one that large."""

from pathlib import Path

import numpy as np

from delegraph.graph import load_model
from delegraph.micro import MicroInterpreter, estimate_arena

MODELS = Path(__file__).parents[1] / "demo" / "models"

model = load_model(MODELS / "digits_int8.tflite")
need = estimate_arena(model)
print(f"head {need.head_bytes:,} bytes, tail {need.tail_bytes:,}, arena {need.total_bytes:,}")

arena = bytearray(need.total_bytes + 15)  # it may not start at a multiple of 16
interpreter = MicroInterpreter(model, arena)
interpreter.allocate_tensors()
with np.load(MODELS / "digits_test.npz") as test:
    image = test["images"][0]  # [8, 8], 0 to 16
interpreter.input(0).data[0, :, :, 0] = np.round(image / 16 * 255 - 128)  # int8, scale 1 / 255
interpreter.invoke()
print("digit", interpreter.output(0).data.argmax())
