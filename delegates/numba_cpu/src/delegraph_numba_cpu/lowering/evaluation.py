"""Runs Delegraph's own kernels during lowering, to tabulate integer operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from delegraph import Node, Registration, Rejection, Tensor, builtin_registration
from delegraph.errors import OperatorError
from delegraph.operators import Numerics, evaluate_node, every_value, prepare_alone
from delegraph_numba_cpu.lowering.registry import Call

__all__ = ["check_evaluation", "evaluate", "every_value"]


def evaluate(
    call: Call, inputs: Sequence[NDArray[Any]], numerics: Numerics | None = None
) -> NDArray[Any]:
    """Return the first output that Delegraph's own kernel of a node computes from *inputs*.

    Args:
        call: the node, which gives types, quantization and options.
        inputs: an array for each input, of any shape that suits the operator.
        numerics: official kernels whose rounding is followed; None for the host's.

    Raises:
        OperatorError: the kernel rejects the node.
    """
    return evaluate_node(*_arguments(call, inputs, numerics))


def check_evaluation(call: Call, inputs: Sequence[NDArray[Any]]) -> Rejection | None:
    """Return a rejection unless Delegraph's own kernel can compute from *inputs*."""
    try:
        prepare_alone(*_arguments(call, inputs, None))
    except OperatorError as error:
        return Rejection("parameters", actual=str(error))
    return None


def _arguments(
    call: Call, inputs: Sequence[NDArray[Any]], numerics: Numerics | None
) -> tuple[Registration, Node, Sequence[Tensor], Sequence[NDArray[Any]], Numerics]:
    """Return all that the core's kernel needs to compute the node *call* alone.

    *inputs* has an array for each input. If *numerics* is None, the host's rounding is used.
    """
    registration = builtin_registration(call.name)
    if registration is None:
        raise OperatorError(f"Delegraph has no kernel of {call.name}")
    context = call.context
    return registration, call.node, context.tensors, inputs, numerics or context.numerics
