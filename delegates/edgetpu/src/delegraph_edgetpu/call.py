"""An operator with its tensors, for the rules that check it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.graph import NUMPY_DTYPES, OperatorSpec, TensorSpec


@dataclass(frozen=True)
class Call:
    """An operator with the tensors of its subgraph.

    Attributes:
        operator: the operator.
        tensors: all tensors of the subgraph.
    """

    operator: OperatorSpec
    tensors: Sequence[TensorSpec]

    def input(self, position: int) -> TensorSpec | None:
        """Return the input tensor at *position*; None if the operator has no such input."""
        inputs = self.operator.inputs
        index = inputs[position] if position < len(inputs) else -1
        return self.tensors[index] if index >= 0 else None

    @property
    def output(self) -> TensorSpec:
        """First output tensor; the operator must have one."""
        return self.outputs[0]

    @property
    def outputs(self) -> list[TensorSpec]:
        """All output tensors of the operator."""
        return [self.tensors[index] for index in self.operator.outputs if index >= 0]

    def inputs(self) -> Iterator[tuple[int, TensorSpec]]:
        """Yield the inputs that are present, each with its position."""
        for position, index in enumerate(self.operator.inputs):
            if index >= 0:
                yield position, self.tensors[index]

    def option(self, name: str, default: Any) -> Any:
        """Return option *name* of the operator, or *default* if the operator does not have it."""
        return getattr(self.operator.options, name, default)

    def values(self, position: int) -> NDArray[Any] | None:
        """Return the values of the input at *position*, in its shape; None if it is no constant."""
        tensor = self.input(position)
        return None if tensor is None else values_of(tensor)


def values_of(tensor: TensorSpec) -> NDArray[Any] | None:
    """Return a constant's values in its shape; None if the tensor is no constant."""
    if tensor.data is None or tensor.type not in NUMPY_DTYPES:
        return None
    return np.asarray(tensor.data.view(NUMPY_DTYPES[tensor.type])).reshape(tensor.shape)
