"""Readers for the options of signal operators; a model must have every option."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delegraph.errors import OperatorError
from delegraph.operators.flexbuffer_options import flexbuffer_options
from delegraph.operators.registration import Node
from delegraph.schema.enums import TensorType

LARGEST = 2**31 - 1
"""Largest value of an option, because TFLM reads each option as an int32."""


def signal_option(node: Node, name: str, low: int = 0, high: int = LARGEST) -> int:
    """Return an option as an integer; a bool counts as 0 or 1.

    Args:
        node: the node.
        name: name of the option.
        low: smallest valid value.
        high: largest valid value.

    Raises:
        OperatorError: the model lacks the option, or its value is invalid.
    """
    value: Any = flexbuffer_options(node.custom_options).get(name)
    if not isinstance(value, int) or not low <= value <= high:
        found = "missing" if value is None else repr(value)
        raise OperatorError(
            f"option {name!r} is {found}, expected a whole number from {low} to {high}"
        )
    return int(value)


def type_option(node: Node, types: Sequence[TensorType]) -> TensorType:
    """Return the option ``T``, the type of the operator's tensors.

    Raises:
        OperatorError: the model lacks the option, or its value is not in *types*.
    """
    type_ = signal_option(node, "T")
    if type_ not in types:
        names = ", ".join(f"{known.value} ({known.name})" for known in types)
        raise OperatorError(f"option 'T' is {type_}, expected one of {names}")
    return TensorType(type_)
