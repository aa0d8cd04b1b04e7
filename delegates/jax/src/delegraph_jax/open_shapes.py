"""Partitions with open shapes, which depend on values, so that XLA cannot compile them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Interpreter, PartitionModel
from delegraph.operators import Numerics
from delegraph_jax.graphs import prepared


def has_open_shapes(model: PartitionModel) -> bool:
    """Whether the shape of some tensor of *model* is known only during invoke.

    A loop may have fixed shapes for some input shapes and open shapes for others. For example, a
    state of one row may grow to the length of the batch in the first iteration.
    """
    with prepared(model) as contexts:
        return any(
            context.tensors[i].is_dynamic
            for context in contexts
            for number in context.get_execution_plan()
            for i in context.get_node_and_registration(number)[0].outputs
            if i >= 0
        )


class OpenPartition:
    """A partition with open shapes, which Delegraph's kernels run instead of JAX.

    Args:
        model: the partition; its inputs have the shapes of the next runs.
        numerics: official kernels whose rounding is used.
    """

    def __init__(self, model: PartitionModel, numerics: Numerics) -> None:
        self._interpreter = Interpreter(
            model_content=model.content, delegates=[], numerics=numerics
        )
        self._interpreter.allocate_tensors()

    def run(self, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Run the partition on *inputs* and return its outputs."""
        opened = self._interpreter
        for detail, values in zip(opened.get_input_details(), inputs, strict=True):
            opened.set_tensor(detail["index"], values)
        opened.invoke()
        return [np.array(opened.get_tensor(each["index"])) for each in opened.get_output_details()]

    def close(self) -> None:
        """Close the interpreter of the partition."""
        self._interpreter.close()
