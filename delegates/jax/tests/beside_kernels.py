"""Running one model by Delegraph's kernels and by the delegate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph_jax.delegate import JaxDelegate
from delegraph_jax.options import JaxOptions


def results(model: bytes, inputs: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first output of Delegraph's kernels, and that of the delegate, which takes all."""
    return _run(model, inputs), _run(model, inputs, [JaxDelegate(JaxOptions())])


def _run(
    model: bytes, inputs: Sequence[NDArray[Any]], delegates: Sequence[JaxDelegate] = ()
) -> NDArray[Any]:
    with Interpreter(model_content=model, experimental_delegates=list(delegates)) as interpreter:
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
        for detail, values in zip(details, inputs, strict=True):
            interpreter.set_tensor(detail["index"], values)
        interpreter.invoke()
        taken = {node.delegate is not None for node in interpreter.placement.nodes}
        assert taken == {bool(delegates)}
        return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
