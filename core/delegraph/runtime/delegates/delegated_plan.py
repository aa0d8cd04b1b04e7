"""Nodes and execution order of a subgraph, and how delegates change them.

Delegate nodes are appended behind the model's own nodes, and the execution plan is rebuilt of both;
a plan can be put back to what it was at any time.

Source:
    Subgraph::ModifyGraphWithDelegate, ReplaceNodeSubsetsWithDelegateKernels, UndoAllDelegates and
    RedoAllDelegates, tflite/core/subgraph.cc. Unlike there, a delegate that fails leaves the
    earlier ones in place.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from delegraph.delegation.delegate import Delegate, DelegateFlags, DelegateParams
from delegraph.delegation.partitioner import NodeSubset
from delegraph.delegation.rejections import NO_REASON, Rejection
from delegraph.errors import DelegateError, DelegatePhase, in_words
from delegraph.operators.registration import InPlace, Node, Registration
from delegraph.runtime.delegates.failure_policy import Incident
from delegraph.runtime.delegates.plan_partitions import partition_plan
from delegraph.runtime.delegates.plan_state import AppliedDelegate, Barred, Snapshot
from delegraph.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from delegraph.runtime.subgraph import Subgraph

logger = logging.getLogger(__name__)


class DelegatedPlan:
    """Nodes, registrations and execution plan of one subgraph.

    Attributes:
        nodes: the model's nodes, then the delegate nodes, each with its registration.
        execution_plan: indices into ``nodes``, in execution order.
        applied: delegates in force, in order.
        owner: for each node that a delegate node replaced, that delegate node.
        absorbed: other subgraphs that delegate nodes of this one compute.
        being_applied: the delegate being applied for the first time; None when there is none.
        being_applied: the delegate being applied for the first time, with the allocation that is
            part of it.
    """

    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph = subgraph
        resolve = subgraph.session.resolver.resolve
        self.nodes: list[tuple[Node, Registration]] = []
        for operator in subgraph.spec.operators:
            node, registration = Node.from_operator(operator), resolve(operator)
            if registration.init is not None:
                node.user_data = registration.init(subgraph.context, node)
            self.nodes.append((node, registration))
        self.execution_plan = list(range(len(self.nodes)))
        self.applied: list[AppliedDelegate] = []
        self.owner: dict[int, int] = {}
        self.absorbed: frozenset[int] = frozenset()
        self._undone: list[AppliedDelegate] = []  # to be applied again before the next allocation
        self.being_applied: Delegate | None = None
        self._applying: Delegate | None = None
        self._barred: dict[int, Rejection] = {}  # from the delegate being applied
        self._base: Snapshot | None = None

    def node(self, index: int) -> tuple[Node, Registration]:
        """Return a node and its registration by node index."""
        return self.nodes[index]

    def steps(self) -> Iterator[tuple[Node, Registration]]:
        """Yield nodes and registrations in execution order."""
        return (self.nodes[index] for index in self.execution_plan)

    # -- applying ------------------------------------------------------------------------------

    def apply(
        self, delegate: Delegate, lost: Barred = MappingProxyType({}), *, is_again: bool = False
    ) -> None:
        """Let a delegate claim nodes; on any failure the plan is as before, and the error tells.

        Args:
            delegate: the delegate.
            lost: nodes that it may not have because a measurement spoke against it.
            is_again: whether a resize has taken it off, so that a kernel that cannot be prepared
                is a matter of the failure policy.

        Raises:
            DelegateError: the delegate failed, or it is static and the graph is not.
        """
        self.redo()
        before = self.snapshot()
        if not self.applied:
            self._base = before
        self.being_applied = None if is_again else delegate
        try:
            self._refuse_open_shapes(delegate)
            self._let_claim(delegate, lost)
        except Exception as error:
            self.restore(before)
            raise self._not_applied(delegate, error) from error
        except BaseException:
            self.restore(before)
            raise
        finally:
            self.being_applied = None

    def _not_applied(self, delegate: Delegate, error: Exception) -> DelegateError:
        name = delegate_name(delegate)
        phase: DelegatePhase = "claim"
        node_index = None
        if isinstance(error, DelegateError):
            phase, node_index = error.phase or phase, error.node_index
        return DelegateError(
            f"delegate {name!r} could not be applied to subgraph {self._subgraph.spec.index}: "
            f"{phase} failed: {in_words(error)}; the graph is as it was before this delegate",
            delegate=name,
            phase=phase,
            node_index=node_index,
        )

    def _let_claim(self, delegate: Delegate, lost: Barred) -> None:
        rules = self._subgraph.session.barred(self._subgraph.spec.index, delegate_name(delegate))
        self._applying, self._barred = delegate, {**lost, **rules}
        for node in list(self._barred):  # a delegate's node that computes a barred one
            self._barred.setdefault(self.current(node), self._barred[node])
        try:
            delegate.prepare(self._subgraph.context)
            rejections = {**delegate.rejections(), **lost, **rules}
        finally:
            self._applying, self._barred = None, {}
        self.applied.append(AppliedDelegate(delegate, rejections, lost))
        self._subgraph.is_allocated = False
        flags = delegate.flags
        if flags & DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE:
            self._require_every_node(delegate, rejections)
        elif not flags & DelegateFlags.ALLOW_DYNAMIC_TENSORS and not self._unresolved():
            self._subgraph.allocate()  # shows now, not later, when a kernel cannot be prepared

    def _require_every_node(self, delegate: Delegate, rejections: Barred) -> None:
        left = [node.index for node, _ in self.steps() if node.delegate is not delegate]
        if left:
            first = rejections.get(left[0], NO_REASON)
            raise DelegateError(
                "it hints that it takes every node (HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE), and "
                f"left {len(left)}, the first of them node {left[0]}: {first}",
                phase="claim",
                node_index=left[0],
            )

    def _refuse_open_shapes(self, delegate: Delegate) -> None:
        """Raise when a static delegate meets a graph with shapes known only while invoking."""
        needs_no_shapes = (
            DelegateFlags.ALLOW_DYNAMIC_TENSORS
            | DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE
        )
        if delegate.flags & needs_no_shapes or self._unresolved():
            return
        subgraph = self._subgraph
        if not subgraph.is_allocated:
            subgraph.prepare_all()
        if subgraph.has_dynamic_tensors:
            node, registration, tensor = subgraph.steps.first_open()
            raise DelegateError(
                "Attempting to use a delegate that only supports static-sized tensors with a graph "
                f"that has dynamic-sized tensors (tensor#{tensor} is a dynamic-sized tensor, made "
                f"so by node {node.index}, {registration.name})"
            )

    def _unresolved(self) -> bool:
        return any(registration.is_unresolved for _, registration in self.steps())

    def absorb(self, other: Subgraph) -> None:
        """See ``DelegateContext.mark_subgraph_as_delegation_skippable``."""
        self._require_applying("a subgraph can be absorbed")
        self.absorbed |= {other.spec.index}

    def _require_applying(self, what: str) -> None:
        if self._applying is None:
            raise DelegateError(f"{what} only while a delegate is being applied")

    def close(self) -> None:
        """Free every node and buffer that wants it, and forget all of them."""
        self._subgraph.buffers.release(self._subgraph.tensors)
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
            [node.inputs for node, _ in self.nodes],
            self._subgraph.buffers.owners(),
            [t.shape for t in tensors],
            dict(self.owner),
            self.absorbed,
        )

    def restore(self, snapshot: Snapshot, *, shapes: bool = True) -> None:
        """Bring a plan back, freeing delegate nodes made since; memory must be allocated again."""
        tensors, buffers = self._subgraph.tensors, self._subgraph.buffers
        buffers.release(tensors[snapshot.num_tensors :])
        del tensors[snapshot.num_tensors :]
        buffers.restore(snapshot.tensor_owners)
        self._free(snapshot.num_nodes)
        self.execution_plan = list(snapshot.execution_plan)
        self.applied = list(snapshot.applied)
        self._undone = list(snapshot.undone)
        self.owner = dict(snapshot.owner)
        self.absorbed = snapshot.absorbed
        for (node, _), inputs in zip(self.nodes, snapshot.node_inputs, strict=True):
            node.inputs = inputs  # a delegate may have let nodes read other tensors
        if shapes:
            for tensor, shape in zip(tensors, snapshot.tensor_shapes, strict=True):
                tensor.shape = shape
        self._subgraph.is_allocated = False

    def _free(self, first: int) -> None:
        """Let go of the nodes from index *first* on."""
        for node, registration in self.nodes[first:]:
            if registration.free is not None:
                try:
                    registration.free(node.user_data)
                except Exception as error:  # noqa: BLE001 - a plugin's, and the rest must be freed
                    logger.warning("%s failed to free: %s", registration.name, in_words(error))
        del self.nodes[first:]

    def undo_static(self) -> None:
        """Take all delegates off when one of them is static; :meth:`redo` applies them again."""
        dynamic = DelegateFlags.ALLOW_DYNAMIC_TENSORS
        if self._base is not None and any(not a.delegate.flags & dynamic for a in self.applied):
            applied = self.applied
            self.restore(self._base, shapes=False)
            self._undone = applied

    def redo(self) -> None:
        """Apply again the delegates that a resize has taken off.

        Raises:
            DelegateError: one of them fails for the new shapes; it and those behind it stay off.
                Under another policy than ``"raise"`` it stays off alone, and is an incident.
        """
        undone, self._undone = self._undone, []
        session = self._subgraph.session
        for applied in undone:
            try:
                self.apply(applied.delegate, applied.lost, is_again=True)
            except DelegateError as error:
                if session.options.policy.on_failure == "raise":
                    raise
                session.incidents.record(
                    Incident(
                        error.delegate,
                        self._subgraph.spec.index,
                        -1 if error.node_index is None else error.node_index,
                        (),
                        error.phase or "claim",
                        str(error),
                    )
                )

    def remove_all(self) -> None:
        """Take all delegates off for good, those that a resize has taken off too."""
        if self.applied and self._base is not None:
            self.restore(self._base, shapes=False)
        self.applied, self._undone, self._base = [], [], None

    # -- partitions ----------------------------------------------------------------------------

    def preview(self, nodes: Sequence[int]) -> list[DelegateParams]:
        """See ``DelegateContext.preview_delegate_partitioning``."""
        nodes = [index for index in nodes if index not in self._barred]
        if not nodes:
            return []
        return [
            self._params(s, None)
            for s in partition_plan(self._subgraph, nodes)
            if s.type == "kTfPartition"
        ]

    def replace(self, registration: Registration, nodes: Sequence[int], delegate: object) -> None:
        """See ``DelegateContext.replace_node_subsets_with_delegate_kernels``."""
        self._require_applying("nodes can be replaced")
        nodes = [index for index in nodes if index not in self._barred]
        if not nodes:
            return
        registration = replace(registration, builtin_code=BuiltinOperator.DELEGATE)
        if self._subgraph.session.options.policy.needs_guard:  # inputs may be needed once more
            registration = replace(registration, inplace=InPlace.NONE)
        plan: list[int] = []
        for subset in partition_plan(self._subgraph, nodes):
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
                    f"its kernel for nodes {list(params.nodes_to_replace)}: {in_words(error)}",
                    phase="init",
                    node_index=index,
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

    def current(self, index: int) -> int:
        """Return the node of the present plan that computes model node *index*."""
        while index in self.owner:
            index = self.owner[index]
        return index

    def delegate_of(self, index: int) -> str | None:
        """Return the name of the delegate that computes model node *index*; None for none."""
        delegate: Any = self.nodes[self.current(index)][0].delegate
        return None if delegate is None else delegate_name(delegate)

    def model_nodes(self, node: Node) -> Iterator[tuple[Node, Registration]]:
        """Yield the model's nodes that a node stands for, through delegate nodes inside it."""
        waiting = [node.index]
        while waiting:
            inner, registration = self.nodes[waiting.pop()]
            if inner.delegate is None:
                yield inner, registration
            else:
                waiting += reversed(inner.options.nodes_to_replace)

    def producer(self, tensor: int) -> int:
        """Return the node of the present plan that makes a tensor; -1 when none does."""
        return next((node.index for node, _ in self.steps() if tensor in node.outputs), -1)


def delegate_name(delegate: Delegate) -> str:
    """Return a delegate's name, or its type's when even that fails."""
    try:
        return str(delegate.name())
    except Exception:  # noqa: BLE001 - a plugin's method, and the error at hand matters more
        return type(delegate).__name__
