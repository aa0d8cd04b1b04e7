"""What the official interpreter and Delegraph make of a model, usually of one operator.

A kernel is compared with the official one in three lines::

    x = tensor((1, 4, 4, 3), "INT8", scale=0.5, zero_point=-3)
    y = tensor((1, 4, 4, 3), "INT8", scale=0.25, zero_point=7)
    model = one_op_model("RELU", [x], [y])
    assert_array_equal(delegraph_outputs(model, [a])[0], official_outputs(model, [a])[0])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.operators.registration import Numerics
from delegraph.testing.one_op import (
    TensorDef,
    constant,
    one_op_model,
    one_op_records,
    quantized,
    tensor,
)

__all__ = [
    "TensorDef",
    "constant",
    "delegraph_outputs",
    "official_outputs",
    "one_op_model",
    "one_op_records",
    "quantized",
    "tensor",
]


def official_outputs(
    model: bytes, inputs: Sequence[NDArray[Any]], *, reference: bool = False
) -> list[NDArray[Any]]:
    """Return every graph output of the official interpreter, one thread, no delegates.

    Args:
        model: a ``.tflite`` file.
        inputs: one array for each graph input; other shapes than declared resize the input.
        reference: use the reference kernels instead of the optimised ones.

    Raises:
        ValueError: it refuses the model; RuntimeError: it refuses the operator.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kernels = "BUILTIN_REF" if reference else "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
    return _run(
        Interpreter(
            model_content=model,
            experimental_op_resolver_type=OpResolverType[kernels],
            num_threads=1,
        ),
        inputs,
    )


def delegraph_outputs(
    model: bytes, inputs: Sequence[NDArray[Any]], *, numerics: Numerics | None = None
) -> list[NDArray[Any]]:
    """Return every graph output of Delegraph, as :func:`official_outputs` does."""
    from delegraph import Interpreter

    return _run(Interpreter(model_content=model, numerics=numerics), inputs)


def _run(interpreter: Any, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    details = interpreter.get_input_details()
    if len(details) != len(inputs):
        raise ValueError(f"the model has {len(details)} inputs, got {len(inputs)} arrays")
    for detail, array in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != np.shape(array):
            interpreter.resize_tensor_input(detail["index"], np.shape(array))
    interpreter.allocate_tensors()
    for detail, array in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], np.asarray(array))
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]
