"""Returns a model's outputs for given inputs, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.operators.numerics import Numerics
from delegraph.runtime.delegates.requested_delegates import AnyDelegate
from delegraph.runtime.interpreter import Interpreter


def delegraph_outputs(
    model: bytes,
    inputs: Sequence[NDArray[Any]],
    *,
    numerics: Numerics | None = None,
    delegates: Sequence[AnyDelegate] = (),
) -> list[NDArray[Any]]:
    """Return every graph output, in order, as copies.

    Args:
        model: bytes of a ``.tflite`` file.
        inputs: one array for each graph input; an array of another shape resizes the input.
        numerics: official kernels whose rounding is reproduced; ``"builtin"`` by default.
        delegates: delegates to apply, in this order: objects, names, or names with options.

    Raises:
        ValueError: the model is rejected, or the number of inputs differs.
        RuntimeError: an operator is rejected, or fails.
    """
    with Interpreter(model_content=model, numerics=numerics, delegates=delegates) as interpreter:
        return outputs_of(interpreter, inputs)


def outputs_of(interpreter: Any, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return every graph output of an interpreter, in order, as copies.

    Args:
        interpreter: Delegraph's interpreter, or another with the same methods. Its inputs are
            resized, and it is allocated and invoked.
        inputs: one array for each graph input; an array of another shape resizes the input.

    Raises:
        ValueError: the number of inputs differs.
    """
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
