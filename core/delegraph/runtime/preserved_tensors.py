"""Tensor values that are kept when a subgraph is allocated again: inputs and variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from delegraph.runtime.subgraph import Subgraph


class PreservedTensors:
    """Copies of the inputs and variables of an allocated subgraph."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph = subgraph
        self._values: dict[int, Any] = {}
        for index in (*subgraph.inputs, *subgraph.variables):
            tensor = subgraph.tensors[index]
            if tensor.data is not None and not tensor.is_constant:
                self._values[index] = tensor.data.copy()

    def put_back(self) -> None:
        """Restore the saved values of all tensors whose shape has not changed since."""
        for index, value in self._values.items():
            tensor = self.subgraph.tensors[index]
            if tensor.data is None or tensor.data.dtype.hasobject:
                tensor.data = value
            elif tensor.data.shape == value.shape:
                np.copyto(tensor.data, value)
