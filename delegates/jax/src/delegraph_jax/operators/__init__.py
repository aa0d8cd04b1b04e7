"""Functions for operators, one module per family; the first look-up imports all modules."""

from delegraph_jax.operators.registry import OPERATORS, Call, Operator, operator_of

__all__ = ["OPERATORS", "Call", "Operator", "operator_of"]
