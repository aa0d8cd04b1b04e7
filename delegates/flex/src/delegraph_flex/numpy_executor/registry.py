"""Table of the operators of the NumPy executor, by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from delegraph.operators import LazyTable
from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import broadcasting, broadcasting_two

F = TypeVar("F", bound=Step)

Bind = Callable[[FlexNode], Step]
"""Function that reads a node's attributes, and returns the step that computes the node."""

FLOATS = frozenset({DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT32, DataType.FLOAT64})
COMPLEX = frozenset({DataType.COMPLEX64, DataType.COMPLEX128})
SIGNED = frozenset({DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64})
UNSIGNED = frozenset({DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64})
INTEGERS = SIGNED | UNSIGNED
REAL = FLOATS | INTEGERS
NUMBERS = REAL | COMPLEX
ALL = NUMBERS | {DataType.BOOL, DataType.STRING}


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of the NumPy executor: its name, its types and its bind function.

    Attributes:
        name: TensorFlow's name of the operator.
        bind: function that returns the step of a node.
        types: allowed types of the attribute ``T``; None if all types are allowed, or there is no
            ``T``.
        broadcasts: whether its inputs are broadcast, so that the result may be larger than each
            input.
    """

    name: str
    bind: Bind
    types: Collection[DataType] | None = None
    broadcasts: bool = False


OPERATORS = LazyTable[Operator]("delegraph_flex.numpy_executor.operators")
"""Mapping from an operator's name to the operator."""


def operator(
    *names: str, types: Collection[DataType] | None = None, broadcasts: bool = False
) -> Callable[[Bind], Bind]:
    """Return the decorator that registers a function as the operators *names*.

    The decorated function takes a :class:`FlexNode` and returns the node's step, a function of the
    input arrays. The step returns an array, or a sequence of arrays for several outputs, with
    TensorFlow's dtypes. It never writes to its inputs, and copies values that it keeps.

    Args:
        names: names of the operators.
        types: allowed types of the attribute ``T``; None if it is not checked.
        broadcasts: whether inputs are broadcast; the memory of the result is then checked. For
            other arrays larger than the inputs, the step itself must call
            ``delegraph_flex.memory``.
    """

    def register(bind: Bind) -> Bind:
        for name in names:
            OPERATORS.enter(name, Operator(name, bind, types, broadcasts))
        return bind

    return register


def step_of(
    *names: str, types: Collection[DataType] | None = None, broadcasts: bool = False
) -> Callable[[F], F]:
    """Return the decorator that registers a step as the operators *names*, for all their nodes.

    The arguments are those of :func:`operator`. Operators without attributes need no more.
    """

    def register(step: F) -> F:
        operator(*names, types=types, broadcasts=broadcasts)(lambda _: step)
        return step

    return register


def step_of_node(*names: str) -> Callable[[F], F]:
    """Return the decorator that registers a step whose first argument is the :class:`FlexNode`.

    It is for steps that use the node's environment, or check values by its attributes.
    """

    def register(step: F) -> F:
        operator(*names)(lambda node: partial(step, node))
        return step

    return register


def functions(
    steps: Mapping[str, Step],
    types: Collection[DataType] | None = None,
    *,
    broadcasts: bool = False,
) -> None:
    """Register functions that exist elsewhere, such as NumPy's, as the steps of operators.

    *steps* maps names to functions; for *types* and *broadcasts* see :func:`operator`.
    """
    for name, step in steps.items():
        step_of(name, types=types, broadcasts=broadcasts)(step)


def bind(node: FlexNode) -> Step:
    """Return the function that computes *node*, by its operator in the table.

    Raises:
        Unsupported: the table lacks the operator, or does not support its attributes.
    """
    found = OPERATORS.get(node.op)
    if found is None:
        raise Unsupported(f"the numpy executor does not have {node.op}", "executor")
    if found.types is not None:
        type = node.type("T")
        if type not in found.types:
            known = " or ".join(sorted(known.name for known in found.types))
            raise Unsupported(f"{node.op} of {type.name}, expected {known}", "dtype")
    step = found.bind(node)
    if not found.broadcasts or len(node.input_types) == 1:
        return step
    return broadcasting_two(step) if len(node.input_types) == 2 else broadcasting(step)
