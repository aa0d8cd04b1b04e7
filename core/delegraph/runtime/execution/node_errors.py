"""Errors that name the failed node, the failed action and the cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from delegraph.delegation.delegate import DelegateParams
from delegraph.errors import (
    ArenaTooSmallError,
    CallCancelledError,
    DefaultDelegateWarning,
    DelegateNodeError,
    DelegatePhase,
    NodeError,
    OperatorError,
    UnresolvedOpError,
    in_words,
)
from delegraph.operators.registration import Node, Registration
from delegraph.operators.tensor import Tensor

Verb = Literal["initialize", "prepare", "allocate", "invoke"]

_PHASES: dict[Verb, DelegatePhase] = {
    "initialize": "init",
    "prepare": "prepare",
    "allocate": "prepare",
    "invoke": "eval",
}

_ALREADY_CLEAR = (
    UnresolvedOpError,
    DelegateNodeError,
    ArenaTooSmallError,
    CallCancelledError,
    DefaultDelegateWarning,
)
"""Errors that are raised unchanged, because they name the node or concern no node."""


class RefusedByKernel(Exception):
    """Raised when even Delegraph's own kernels cannot compute a delegate node's original nodes.

    Args:
        error: error of the model's node, which users would get without the delegate.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def node_error(node: Node, registration: Registration, verb: Verb, error: Exception) -> Exception:
    """Return the error "*node* failed to *verb*" (such as prepare), with the cause *error*."""
    if isinstance(error, RefusedByKernel):
        return error.error
    if isinstance(error, _ALREADY_CLEAR):
        return error
    message = f"Node number {node.index} ({registration.name}) failed to {verb}: {in_words(error)}"
    if node.delegate is None:
        return NodeError(message, node_index=node.index, op=registration.name)
    delegate: Any = node.delegate
    return DelegateNodeError(
        f"{message} (delegate {delegate.name()!r}, in place of {_replaced(node.options)})",
        node_index=node.index,
        op=registration.name,
        delegate=delegate.name(),
        phase=_PHASES[verb],
    )


def explained(node: Node, tensors: Sequence[Tensor], error: Exception) -> Exception:
    """Return *error*, or an error that names the input of *node* without a value that caused it."""
    if isinstance(error, RefusedByKernel):
        return error
    for index in node.inputs:
        if index >= 0 and tensors[index].data is None:
            return OperatorError(f"Input tensor {index} lacks data; set_tensor() comes first")
    return error


def cause_of(error: Exception) -> BaseException | None:
    """Return the cause with which to raise :func:`node_error` of *error*; None if it has none."""
    if isinstance(error, RefusedByKernel):
        return error.error.__cause__
    return error.__cause__ if isinstance(error, _ALREADY_CLEAR) else error


def _replaced(params: DelegateParams) -> str:
    nodes = params.nodes_to_replace
    shown = ", ".join(map(str, nodes[:8])) + (", ..." if len(nodes) > 8 else "")
    return f"node {shown}" if len(nodes) == 1 else f"nodes {shown}"


def require_kernel(node: Node, registration: Registration) -> None:
    """Check that a node has a kernel, so that it can run without a delegate.

    Raises:
        UnresolvedOpError: the node is a custom operator without a kernel.
    """
    if registration.is_unresolved:
        raise UnresolvedOpError(
            f"Node number {node.index} ({registration.name}) has no kernel, so only the delegate "
            "can compute it",
            node_index=node.index,
            op=registration.name,
        )
