"""Running one model by Delegraph's kernels and by the delegate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.testing.outputs import outputs_of
from delegraph_jax.delegate import JaxDelegate
from delegraph_jax.options import JaxOptions


def results(model: bytes, inputs: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first output of Delegraph's kernels, and of the delegate with all nodes."""
    return _run(model, inputs), _run(model, inputs, [JaxDelegate(JaxOptions())])


def _run(
    model: bytes, inputs: Sequence[NDArray[Any]], delegates: Sequence[JaxDelegate] = ()
) -> NDArray[Any]:
    with Interpreter(model_content=model, experimental_delegates=list(delegates)) as interpreter:
        found = outputs_of(interpreter, inputs)[0]
        taken = {node.delegate is not None for node in interpreter.placement.nodes}
        assert taken == {bool(delegates)}
        return found
