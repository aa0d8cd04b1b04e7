"""Prepares a delegate node in the runtime: inner shapes, buffers, and the failure policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from delegraph.delegation.delegate import Delegate, DelegateFlags
from delegraph.errors import PartitionRejected
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.lazy_dataclass import dataclass, replace
from delegraph.operators.registration import Eval, InPlace, Node, OpContext, Prepare, Registration
from delegraph.runtime.delegates.default_guard import DefaultGuard
from delegraph.runtime.delegates.fallback import Guard
from delegraph.runtime.delegates.replaced_nodes import original_nodes
from delegraph.runtime.subgraph import Subgraph


@dataclass(frozen=True, slots=True)
class DelegateNodePrepare:
    """Prepares the delegate nodes of a subgraph.

    Attributes:
        subgraph: the subgraph.
        own: the delegate's own ``prepare``.
    """

    subgraph: Subgraph
    own: Prepare

    def __call__(self, context: OpContext, node: Node) -> Eval:
        """Return the evaluation that runs the delegate node.

        If the context is not the subgraph's own, a later delegate has replaced the node. Then only
        the delegate's own ``prepare`` is called.
        """
        if context is not self.subgraph.context:
            return self.own(context, node)
        policy = self.subgraph.session.policy_of(node.delegate)
        if policy.is_default:
            return DefaultGuard(self.subgraph, node).prepared(self._checked)
        self._check_shapes(node)
        if policy.needs_guard:
            return Guard(self.subgraph, node).prepared(self.own)
        try:
            step = self.own(context, node)
        except PartitionRejected as rejection:
            return Guard(self.subgraph, node).prepared_instead(rejection)
        return self.subgraph.buffers.reading(step, node)

    def _checked(self, context: OpContext, node: Node) -> Eval:
        self._check_shapes(node)
        return self.own(context, node)

    def _check_shapes(self, node: Node) -> None:
        """Check the original nodes again if shapes have changed since the delegate claimed them.

        Afterwards an output's shape is unknown if the original nodes do not determine it before
        they run.

        Raises:
            NodeError: a kernel rejects one of the nodes. Refusals of custom operators count only if
                the delegate needs the shapes inside the partition.
            UnresolvedOpError: one of the nodes is a custom operator without a kernel, and the
                delegate needs the shapes inside the partition.
        """
        delegate: Any = node.delegate
        subgraph = self.subgraph
        needs_shapes = DelegateFlags.REQUIRE_PROPAGATED_SHAPES in delegate.flags
        nodes = original_nodes(subgraph, node, only_kernels=True)
        findings = subgraph.findings
        if not findings.hold_for(nodes, subgraph.tensors):
            from delegraph.runtime.delegates.checked_nodes import check_nodes

            limit = subgraph.session.memory_limit
            findings = check_nodes(subgraph.context, nodes, limit, follows_calls=True)
            findings.raise_first(needs_shapes=needs_shapes)
        if needs_shapes:
            findings.give_shapes(nodes, subgraph.tensors)
        for index in findings.left_open.intersection(node.outputs):
            if subgraph.tensors[index].type not in OBJECT_TYPES:
                subgraph.steps.leave_open(subgraph.tensors[index])


def as_delegate_node(
    subgraph: Subgraph, delegate: Delegate, registration: Registration
) -> Registration:
    """Return the *registration* of a kernel of *delegate* with the runtime's own ``prepare``.

    This one prepares nodes of *subgraph*, and calls the kernel's ``prepare``.
    """
    added = replace(registration, prepare=DelegateNodePrepare(subgraph, registration.prepare))
    if subgraph.session.policy_of(delegate).needs_guard:  # inputs may be needed again
        added = replace(added, inplace=InPlace.NONE)
    return added


def with_own_prepare(
    registration: Registration, change: Callable[[Prepare], Prepare]
) -> Registration:
    """Return a delegate node's *registration* with another ``prepare`` of the delegate.

    Args:
        registration: a result of :func:`as_delegate_node`.
        change: function that returns the new ``prepare`` for the present one.
    """
    prepare = registration.prepare
    assert isinstance(prepare, DelegateNodePrepare), "not the registration of a delegate node"
    return replace(registration, prepare=replace(prepare, own=change(prepare.own)))
