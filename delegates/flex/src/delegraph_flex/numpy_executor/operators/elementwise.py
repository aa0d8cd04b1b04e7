"""Operators that compute each element by itself."""

from __future__ import annotations

import numpy as np

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.registry import NUMBERS, operator


@operator("Sub", types=NUMBERS)
def subtract(node: FlexNode) -> Step:
    """x - y, broadcast."""
    return np.subtract
