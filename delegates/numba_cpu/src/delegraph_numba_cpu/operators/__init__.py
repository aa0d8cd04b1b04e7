"""The operators this delegate takes: when, and as which kernel calls."""

from __future__ import annotations

from delegraph_numba_cpu.operators import moves as moves  # fills the table
from delegraph_numba_cpu.operators.registry import OPERATORS, Call, Operator

__all__ = ["OPERATORS", "Call", "Operator"]
