"""The errors of nodes: which one, what it was doing, why."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from delegraph.delegation.delegate import DelegateParams
from delegraph.errors import (
    DelegateNodeError,
    DelegatePhase,
    ModelError,
    NodeError,
    OperatorError,
    UnresolvedOpError,
)
from delegraph.kernels.registration import Node, Registration
from delegraph.plugins.known_packages import package_for
from delegraph.runtime.delegated_plan import DelegatedPlan

Verb = Literal["prepare", "allocate", "invoke"]

_PHASES: dict[Verb, DelegatePhase] = {"prepare": "prepare", "allocate": "prepare", "invoke": "eval"}


def node_error(node: Node, registration: Registration, verb: Verb, error: Exception) -> ModelError:
    """Return the error that says which node failed, at what, and why."""
    if isinstance(error, UnresolvedOpError | DelegateNodeError):
        return error
    reason = str(error) if isinstance(error, OperatorError) else f"{type(error).__name__}: {error}"
    message = f"Node number {node.index} ({registration.name}) failed to {verb}: {reason}"
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


def _replaced(params: DelegateParams) -> str:
    nodes = params.nodes_to_replace
    shown = ", ".join(map(str, nodes[:8])) + (", ..." if len(nodes) > 8 else "")
    return f"node {shown}" if len(nodes) == 1 else f"nodes {shown}"


def unresolved_op_error(plan: DelegatedPlan, node: Node) -> UnresolvedOpError:
    """Return the error that lists all custom operators nobody provides; *node* is the first."""
    missing = Counter(
        registration.name for _, registration in plan.steps() if registration.is_unresolved
    )
    first = plan.node(node.index)[1].name
    lines = [f"Encountered unresolved custom op: {first}."]
    for name, count in sorted(missing.items()):
        package = package_for(name)
        hint = (
            f"pip install {package}"
            if package
            else "register_custom_op(), or a delegate that claims it"
        )
        lines.append(f"  {name} ({count} node{'s' * (count > 1)}): {hint}")
    return UnresolvedOpError("\n".join(lines), node_index=node.index, op=first)
