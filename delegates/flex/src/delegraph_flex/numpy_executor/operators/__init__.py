"""One module a family of operators; importing this package registers them all."""

from __future__ import annotations

from delegraph_flex.numpy_executor.operators import (  # noqa: F401 - importing them registers
    elementwise,
    stateful_random,
    stateless_random,
)
from delegraph_flex.numpy_executor.registry import OPERATORS, bind

__all__ = ["OPERATORS", "bind"]
