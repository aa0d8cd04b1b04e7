"""NumPy executor, whose values are NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.data_types import HANDLES, boxed
from delegraph_flex.executor import Executor, Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor import registry


class NumpyExecutor(Executor):
    """Runs operators by NumPy and SciPy.

    A value is an array; a resource or variant is the object itself.
    """

    name = "numpy"

    def bind(self, node: FlexNode) -> Step:
        return registry.bind(node)

    def enter(self, array: NDArray[Any], type: TensorType) -> Any:
        return array[()] if type in HANDLES else array

    def leave(self, value: Any, type: TensorType) -> NDArray[Any]:
        return boxed(value) if type in HANDLES else np.asarray(value)
