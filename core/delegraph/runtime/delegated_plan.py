"""Nodes and execution order of a subgraph, and how delegates change them.

Delegate nodes are appended behind the model's own nodes, and the execution plan is rebuilt of both;
a plan can be put back to what it was at any time.

Source:
    Subgraph::ModifyGraphWithDelegate, ReplaceNodeSubsetsWithDelegateKernels, UndoAllDelegates and
    RedoAllDelegates, tflite/core/subgraph.cc. Unlike there, a delegate that fails leaves the
    earlier ones in place, and control edges follow their nodes when a plan has become shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from delegraph.delegation.delegate import Delegate, DelegateFlags, DelegateParams, Rejection
from delegraph.delegation.partitioner import (
    GraphInfo,
    NodeInfo,
    NodeSubset,
    partition_graph_into_independent_node_subsets,
)
from delegraph.errors import ArgumentError, DelegateError, DelegraphError
from delegraph.kernels.registration import Node, Registration
from delegraph.schema.enums import BuiltinOperator, TensorType

if TYPE_CHECKING:
    from delegraph.runtime.subgraph import Subgraph

_CALLS_SUBGRAPHS = (BuiltinOperator.IF, BuiltinOperator.WHILE, BuiltinOperator.CALL_ONCE)


@dataclass(frozen=True, slots=True)
class AppliedDelegate:
    """A delegate in force, and why it left the nodes it left."""

    delegate: Delegate
    rejections: dict[int, Rejection]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that applying a delegate changes."""

    num_nodes: int
    num_tensors: int
    execution_plan: list[int]
    applied: list[AppliedDelegate]
    undone: list[Delegate]
    tensor_delegates: list[tuple[object | None, int, bool]]
    tensor_shapes: list[tuple[int, ...]]
    owner: dict[int, int]


class DelegatedPlan:
    """Nodes, registrations and execution plan of one subgraph.

    Attributes:
        nodes: the model's nodes, then the delegate nodes, each with its registration.
        execution_plan: indices into ``nodes``, in execution order.
        applied: delegates in force, in order.
        owner: for each node that a delegate node replaced, that delegate node.
    """

    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph = subgraph
        resolve = subgraph.session.resolver.resolve
        self.nodes: list[tuple[Node, Registration]] = []
        for operator in subgraph.spec.operators:
            custom = operator.custom_options
            node = Node(
                operator.index,
                operator.inputs,
                operator.outputs,
                operator.intermediates,
                operator.options,
                b"" if custom is None else custom.tobytes(),
                operator.version,
            )
            registration = resolve(operator)
            if registration.init is not None:
                node.user_data = registration.init(subgraph.context, node)
            self.nodes.append((node, registration))
        self.execution_plan = list(range(len(self.nodes)))
        self.applied: list[AppliedDelegate] = []
        self.owner: dict[int, int] = {}
        self._num_model_nodes = len(self.nodes)
        self._undone: list[Delegate] = []  # to be applied again before the next allocation
        self._applying: Delegate | None = None
        self._base: Snapshot | None = None

    def node(self, index: int) -> tuple[Node, Registration]:
        """Return a node and its registration by node index."""
        return self.nodes[index]

    def steps(self) -> Iterator[tuple[Node, Registration]]:
        """Yield nodes and registrations in execution order."""
        return (self.nodes[index] for index in self.execution_plan)

    # -- applying ------------------------------------------------------------------------------

    def apply(self, delegate: Delegate) -> None:
        """Let a delegate claim nodes; on any failure the plan is as before, and the error tells.

        Raises:
            DelegateError: the delegate failed, or it is static and the graph is not.
        """
        self.redo()
        before = self.snapshot()
        if not self.applied:
            self._base = before
        try:
            self._refuse_open_shapes(delegate)
            self._let_claim(delegate)
        except Exception as error:
            self.restore(before)
            where = f"subgraph {self._subgraph.spec.index}"
            raise DelegateError(
                f"delegate {_name(delegate)!r} could not be applied to {where}: "
                f"{_reason(error)}; the graph is as it was before this delegate"
            ) from error
        except BaseException:
            self.restore(before)
            raise

    def _let_claim(self, delegate: Delegate) -> None:
        self._applying = delegate
        try:
            delegate.prepare(self._subgraph.context)
        finally:
            self._applying = None
        self.applied.append(AppliedDelegate(delegate, delegate.rejections()))
        self._subgraph.is_allocated = False
        if not delegate.flags & DelegateFlags.ALLOW_DYNAMIC_TENSORS and not self._unresolved():
            self._subgraph.allocate()  # shows now, not later, when a kernel cannot be prepared

    def _refuse_open_shapes(self, delegate: Delegate) -> None:
        """Raise when a static delegate meets a graph with shapes known only while invoking."""
        flags = delegate.flags
        if flags & DelegateFlags.ALLOW_DYNAMIC_TENSORS or self._unresolved():
            return
        subgraph = self._subgraph
        if not subgraph.is_allocated:
            subgraph.prepare_all()
        if subgraph.has_dynamic_tensors:
            node, registration, tensor = subgraph.first_open_shape()
            raise DelegateError(
                "Attempting to use a delegate that only supports static-sized tensors with a graph "
                f"that has dynamic-sized tensors (tensor#{tensor} is a dynamic-sized tensor, made "
                f"so by node {node.index}, {registration.name})"
            )

    def _unresolved(self) -> bool:
        return any(registration.is_unresolved for _, registration in self.steps())

    def close(self) -> None:
        """Free every node that wants it, and forget all of them."""
        self._free(0)
        self.execution_plan.clear()
        self.applied.clear()
        self._undone.clear()
        self._base = None

    # -- undo and redo -------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return what :meth:`restore` needs to bring the present plan back."""
        tensors = self._subgraph.tensors
        return Snapshot(
            len(self.nodes),
            len(tensors),
            list(self.execution_plan),
            list(self.applied),
            list(self._undone),
            [(t.delegate, t.buffer_handle, t.data_is_stale) for t in tensors],
            [t.shape for t in tensors],
            dict(self.owner),
        )

    def restore(self, snapshot: Snapshot, *, shapes: bool = True) -> None:
        """Bring a plan back, freeing delegate nodes made since; memory must be allocated again."""
        self._free(snapshot.num_nodes)
        del self._subgraph.tensors[snapshot.num_tensors :]
        self.execution_plan = list(snapshot.execution_plan)
        self.applied = list(snapshot.applied)
        self._undone = list(snapshot.undone)
        self.owner = dict(snapshot.owner)
        for tensor, state in zip(self._subgraph.tensors, snapshot.tensor_delegates, strict=True):
            tensor.delegate, tensor.buffer_handle, tensor.data_is_stale = state
        if shapes:
            for tensor, shape in zip(self._subgraph.tensors, snapshot.tensor_shapes, strict=True):
                tensor.shape = shape
        self._subgraph.is_allocated = False

    def _free(self, first: int) -> None:
        """Let go of the nodes from index *first* on."""
        for node, registration in self.nodes[first:]:
            if registration.free is not None:
                registration.free(node.user_data)
        del self.nodes[first:]

    def undo_static(self) -> None:
        """Take all delegates off when one of them is static; :meth:`redo` applies them again."""
        dynamic = DelegateFlags.ALLOW_DYNAMIC_TENSORS
        if self._base is not None and any(not a.delegate.flags & dynamic for a in self.applied):
            delegates = [applied.delegate for applied in self.applied]
            self.restore(self._base, shapes=False)
            self._undone = delegates

    def redo(self) -> None:
        """Apply again the delegates that a resize has taken off.

        Raises:
            DelegateError: one of them fails for the new shapes; it and those behind it stay off.
        """
        undone, self._undone = self._undone, []
        for delegate in undone:
            self.apply(delegate)

    # -- partitions ----------------------------------------------------------------------------

    def preview(self, nodes: Sequence[int]) -> list[DelegateParams]:
        """See ``DelegateContext.preview_delegate_partitioning``."""
        if not nodes:
            return []
        return [self._params(s, None) for s in self._partition(nodes) if s.type == "kTfPartition"]

    def replace(self, registration: Registration, nodes: Sequence[int], delegate: object) -> None:
        """See ``DelegateContext.replace_node_subsets_with_delegate_kernels``."""
        if self._applying is None:
            raise DelegateError("nodes can be replaced only while a delegate is being applied")
        if not nodes:
            return
        registration = replace(registration, builtin_code=BuiltinOperator.DELEGATE)
        plan: list[int] = []
        for subset in self._partition(nodes):
            if subset.type == "kTfPartition":
                plan.append(self._add_delegate_node(registration, subset, delegate))
            else:
                plan += subset.nodes
        self.execution_plan = plan

    def _add_delegate_node(
        self, registration: Registration, subset: NodeSubset, delegate: object
    ) -> int:
        index = len(self.nodes)
        params = self._params(subset, delegate)
        node = Node(
            index, params.input_tensors, params.output_tensors, options=params, delegate=delegate
        )
        self.nodes.append((node, registration))
        for replaced in params.nodes_to_replace:
            self.owner[replaced] = index
        for output in params.output_tensors:
            self._subgraph.tensors[output].delegate = delegate
        if registration.init is not None:
            try:
                node.user_data = registration.init(self._subgraph.context, node)
            except Exception as error:
                raise DelegateError(
                    f"its kernel for nodes {list(params.nodes_to_replace)} failed to init: "
                    f"{_reason(error)}"
                ) from error
        return index

    def _params(self, subset: NodeSubset, delegate: object | None) -> DelegateParams:
        return DelegateParams(
            delegate,
            tuple(subset.nodes),
            tuple(subset.input_tensors),
            tuple(subset.output_tensors),
            self._subgraph.context,
        )

    def _partition(self, nodes: Sequence[int]) -> list[NodeSubset]:
        subgraph, options = self._subgraph, self._subgraph.session.options
        graph = GraphInfo(
            nodes=[
                NodeInfo(
                    node.inputs, node.outputs, self._might_have_side_effect(node, registration)
                )
                for node, registration in self.steps()
            ],
            execution_plan=self.execution_plan,
            num_total_nodes=len(self.nodes),
            inputs=subgraph.inputs,
            outputs=subgraph.outputs,
            variables=subgraph.variables,
        )
        return partition_graph_into_independent_node_subsets(
            graph,
            list(nodes),
            greedily=not options.disable_delegate_clustering,
            control_edges=self._control_edges(),
            disable_node_fusion=options.preserve_all_tensors
            or options.disable_delegate_node_fusion,
        )

    def _might_have_side_effect(self, node: Node, registration: Registration) -> bool:
        if registration.builtin_code in _CALLS_SUBGRAPHS:
            return True
        tensors = self._subgraph.tensors
        return any(
            tensors[i].type == TensorType.RESOURCE for i in (*node.inputs, *node.outputs) if i >= 0
        )

    def _control_edges(self) -> list[tuple[int, int]] | None:
        """Return the model's control edges as positions in the present plan."""
        edges = self._subgraph.session.control_edges
        if edges is None:
            return None
        position = {node: i for i, node in enumerate(self.execution_plan)}
        moved = []
        for before, after in edges[self._subgraph.spec.index]:
            for index in (before, after):
                if not 0 <= index < self._num_model_nodes:
                    raise ArgumentError(f"control edge of the model names node {index}")
            pair = position[self.current(before)], position[self.current(after)]
            if pair[0] != pair[1]:
                moved.append(pair)
        return moved

    def current(self, index: int) -> int:
        """Return the node of the present plan that computes model node *index*."""
        while index in self.owner:
            index = self.owner[index]
        return index


def _name(delegate: Delegate) -> str:
    try:
        return delegate.name()
    except Exception:  # noqa: BLE001 - a plugin's method, and the error at hand matters more
        return type(delegate).__name__


def _reason(error: Exception) -> str:
    if isinstance(error, DelegraphError):
        return str(error)
    return f"{type(error).__name__}: {error}"
