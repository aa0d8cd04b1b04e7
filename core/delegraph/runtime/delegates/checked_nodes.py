"""Finds the malformed nodes of a graph, by preparing the kernels of all nodes on private copies.

A kernel's ``prepare`` rejects malformed nodes. A delegate gets no node that the kernel rejects. The
nodes are checked again whenever shapes have changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from delegraph.errors import DelegraphError, UnresolvedOpError
from delegraph.graph.calls import called_subgraphs
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.op_table import has_own_kernel
from delegraph.operators.registration import Eval, Node, OpContext, Registration
from delegraph.runtime.delegates.node_facts import Findings, KnownTensor
from delegraph.runtime.delegates.private_state import PrivateNodes
from delegraph.runtime.execution.node_classes import NodeClasses
from delegraph.runtime.execution.steps import Step


def check_nodes(
    host: OpContext,
    nodes: Sequence[Step],
    limit: MemoryLimit,
    *,
    errors: Mapping[int, DelegraphError] = MappingProxyType({}),
    follows_calls: bool = False,
    unknown: Iterable[int] = (),
) -> Findings:
    """Return which nodes their kernels reject, and which shapes are known; tensors stay unchanged.

    The nodes are prepared on private copies of their tensors. The tensors change in one respect:
    outputs whose element type an operator decides get that type. Nodes without a kernel, nodes of
    delegates, and nodes that read a tensor of unknown shape are not checked.

    Args:
        host: the context of the subgraph.
        nodes: the nodes to check, in execution order.
        limit: maximal number of bytes of their tensors.
        errors: errors of nodes that are already known to be rejected.
        follows_calls: whether nodes that call subgraphs are checked, which prepares these
            subgraphs.
        unknown: indices of the nodes' input tensors whose shape is not known yet.
    """
    checked = _CheckedNodes(host, nodes, limit, errors, follows_calls=follows_calls)
    return checked.findings(unknown)


class _CheckedNodes(PrivateNodes):
    """Nodes that are prepared only to check whether their kernels accept them."""

    def __init__(
        self,
        host: OpContext,
        nodes: Sequence[Step],
        limit: MemoryLimit,
        errors: Mapping[int, DelegraphError],
        *,
        follows_calls: bool,
    ) -> None:
        super().__init__(host, nodes, limit, is_only_checked=True)
        self._tensors = host.tensors
        self._classes = NodeClasses(host.tensors)
        self._follows_calls = follows_calls
        self._errors = dict(errors)
        self._custom_errors: dict[int, DelegraphError] = {}
        self._left_open_by_kernels: set[int] = set()

    def findings(self, unknown: Iterable[int]) -> Findings:
        """Prepare all nodes; return their errors, and the tensors that are known afterwards.

        *unknown* are the tensors whose shapes are known only while the model runs.
        """
        open_tensors = set(unknown)
        with self.as_computed():
            for state in self.states.values():
                state.tensor.make_static()
            for node, registration in self.nodes:
                open_tensors -= {*node.outputs}
                open_tensors |= self._left_open(node, registration, open_tensors)
            touched = {i for node, _ in self.nodes for i in (*node.inputs, *node.outputs) if i >= 0}
            known = {i: KnownTensor.of(self._tensors[i]) for i in touched - open_tensors}
        left_open = frozenset(self._left_open_by_kernels)
        return Findings(self._errors, known, left_open, self._custom_errors)

    def _left_open(self, node: Node, registration: Registration, unknown: set[int]) -> set[int]:
        """Prepare *node* if its input shapes are known; return its outputs whose shapes are not.

        *unknown* has the indices of tensors of unknown shape.
        """
        outputs = {*node.outputs}
        can_tell = unknown.isdisjoint(node.inputs) and self._has_kernel(node, registration)
        if not can_tell or node.index in self._errors:
            return outputs
        try:
            self._open = frozenset()
            self._classes.prepared(node, registration, self._prepare_alone)
        except UnresolvedOpError:  # in a called subgraph
            return outputs
        except DelegraphError as error:
            _forget_frames(error)
            errors = self._errors if has_own_kernel(registration) else self._custom_errors
            errors[node.index] = error
            return outputs
        self._left_open_by_kernels |= self._open
        return set(self._open)

    def _prepare_alone(self, node: Node, registration: Registration) -> Eval:
        self.steps.prepare([(node, registration)])
        self._open = frozenset({*node.outputs} - self.steps.known_outputs())
        return self.steps.evals[0]

    def _has_kernel(self, node: Node, registration: Registration) -> bool:
        if not self._follows_calls and any(True for _ in called_subgraphs(node.options)):
            return False
        return node.delegate is None and not registration.is_unresolved


def _forget_frames(error: BaseException | None) -> None:
    """Remove the tracebacks of an error and its causes, so that their memory is freed."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
