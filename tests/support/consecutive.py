"""Models with a state: consecutive invokes on which both interpreters must agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter

Arrays = list[NDArray[Any]]


def official_run(model: bytes, steps: Sequence[Sequence[NDArray[Any]]]) -> list[Arrays]:
    """Return the official interpreter's outputs of consecutive invokes."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType  # no wheel for every Python

    kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(
        model_content=model, experimental_op_resolver_type=kernels, num_threads=1
    )
    return _run(interpreter, steps)


def delegraph_run(model: bytes, steps: Sequence[Sequence[NDArray[Any]]]) -> list[Arrays]:
    """Return Delegraph's outputs of consecutive invokes."""
    return _run(Interpreter(model_content=model), steps)


def assert_steps_agree(
    model: bytes, steps: Sequence[Sequence[NDArray[Any]]], *, tolerance: float = 0.0
) -> list[Arrays]:
    """Check that both interpreters return the same at every invoke, and return it.

    Args:
        model: a ``.tflite`` file.
        steps: the graph inputs of each invoke.
        tolerance: largest absolute and relative difference, for floats.
    """
    ours, official = delegraph_run(model, steps), official_run(model, steps)
    for mine, theirs in zip(ours, official, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    return ours


def _run(interpreter: Any, steps: Sequence[Sequence[NDArray[Any]]]) -> list[Arrays]:
    interpreter.allocate_tensors()
    results = []
    for arrays in steps:
        for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        results.append([np.array(interpreter.get_tensor(y["index"])) for y in outputs])
    return results
