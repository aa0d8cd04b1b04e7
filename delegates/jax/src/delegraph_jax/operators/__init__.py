"""The operators, one module a family; the first look-up in the table imports them all."""

from delegraph_jax.operators.registry import OPERATORS, Call, Operator, operator_of

__all__ = ["OPERATORS", "Call", "Operator", "operator_of"]
