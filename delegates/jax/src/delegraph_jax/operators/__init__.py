"""Operators in one module for each family; the first look-up in the table imports all modules."""

from delegraph_jax.operators.registry import OPERATORS, Call, Operator, operator_of

__all__ = ["OPERATORS", "Call", "Operator", "operator_of"]
