"""Writes ``models/sines.tflite``, f(x) = sin(x) + x + sin(2x), with Delegraph's own schema writer.

    python docs/demo/make_sines.py

The five nodes stand in the order in which a reader would compute them::

    0 SIN   s     = sin(x)
    1 ADD   left  = s + x
    2 MUL   twice = x * 2
    3 SIN   right = sin(twice)
    4 ADD   y     = left + right
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from delegraph.schema import write_model
from delegraph.schema.enums import BuiltinOperator, TensorType
from delegraph.schema.options import AddOptions, MulOptions
from delegraph.schema.tables import (
    Buffer,
    Model,
    Operator,
    SignatureDef,
    SubGraph,
    Tensor,
    TensorMap,
    operator_code,
)

SINES = Path(__file__).parent / "models" / "sines.tflite"

NAMES = ["x", "two", "s", "left", "twice", "right", "y"]
X, TWO, S, LEFT, TWICE, RIGHT, Y = range(len(NAMES))
CODES = [BuiltinOperator.SIN, BuiltinOperator.ADD, BuiltinOperator.MUL]
SIN, ADD, MUL = range(len(CODES))


def sines_model() -> bytes:
    """Return f(x) as the bytes of a ``.tflite`` file; x and f(x) are ``[1], float32``."""
    two = Buffer(data=np.array([2], "<f4").view(np.uint8))
    tensors = [
        Tensor(shape=(1,), type=TensorType.FLOAT32, buffer=1 if name == "two" else 0, name=name)
        for name in NAMES
    ]
    operators = [
        Operator(opcode_index=SIN, inputs=(X,), outputs=(S,)),
        Operator(opcode_index=ADD, inputs=(S, X), outputs=(LEFT,), builtin_options=AddOptions()),
        Operator(opcode_index=MUL, inputs=(X, TWO), outputs=(TWICE,), builtin_options=MulOptions()),
        Operator(opcode_index=SIN, inputs=(TWICE,), outputs=(RIGHT,)),
        Operator(
            opcode_index=ADD, inputs=(LEFT, RIGHT), outputs=(Y,), builtin_options=AddOptions()
        ),
    ]
    graph = SubGraph(
        tensors=tuple(tensors), inputs=(X,), outputs=(Y,), operators=tuple(operators), name="main"
    )
    signature = SignatureDef(
        inputs=(TensorMap(name="x", tensor_index=X),),
        outputs=(TensorMap(name="y", tensor_index=Y),),
        signature_key="serving_default",
    )
    model = Model(
        version=3,
        operator_codes=tuple(operator_code(code) for code in CODES),
        subgraphs=(graph,),
        description="f(x) = sin(x) + x + sin(2x)",
        buffers=(Buffer(), two),
        signature_defs=(signature,),
    )
    return write_model(model)


if __name__ == "__main__":
    SINES.write_bytes(sines_model())
