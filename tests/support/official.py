"""What the official interpreter makes of a model.

A kernel is compared with the official one in three lines::

    x = tensor((1, 4, 4, 3), "INT8", scale=0.5, zero_point=-3)
    y = tensor((1, 4, 4, 3), "INT8", scale=0.25, zero_point=7)
    model = one_op_model("RELU", [x], [y])
    assert_array_equal(delegraph_outputs(model, [a])[0], official_outputs(model, [a])[0])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from delegraph.testing.outputs import outputs_of


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
    from ai_edge_litert.interpreter import Interpreter, OpResolverType  # no wheel for every Python

    kernels = "BUILTIN_REF" if reference else "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
    return outputs_of(
        Interpreter(
            model_content=model,
            experimental_op_resolver_type=OpResolverType[kernels],
            num_threads=1,
        ),
        inputs,
    )
