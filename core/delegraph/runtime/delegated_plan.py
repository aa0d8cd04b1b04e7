"""Nodes and execution order of a subgraph, and the changes that delegates make to them.

Delegate nodes come after the model's own nodes, and the execution plan has nodes of both kinds. A
snapshot of a plan can be restored at any time. Modules that only delegates need are imported when
delegates are applied.

Source:
    ReplaceNodeSubsetsWithDelegateKernels, tflite/core/subgraph.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from delegraph.errors import DelegateError, in_words
from delegraph.lazy_dataclass import replace
from delegraph.log import Logger
from delegraph.operators.registration import Node, Registration
from delegraph.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate, DelegateContext, DelegateParams
    from delegraph.delegation.partitioner import ControlEdge, NodeSubset
    from delegraph.graph.model import SubgraphSpec
    from delegraph.operators.tensor import Tensor
    from delegraph.runtime.delegates.plan_partitions import PlanPartitioner
    from delegraph.runtime.delegates.plan_state import Application, AppliedDelegate, PlanSnapshot
    from delegraph.runtime.options import InterpreterOptions

PartitionerArguments: TypeAlias = (
    "tuple[SubgraphSpec, Sequence[Tensor], InterpreterOptions, Sequence[ControlEdge] | None]"
)

logger = Logger(__name__)


class DelegatedPlan:
    """Nodes, registrations and execution plan of one subgraph, with methods to edit them.

    Args:
        nodes: the model's nodes, each with its registration.
        partitioner: arguments for the ``PlanPartitioner`` that splits the plan into node subsets.

    Attributes:
        nodes: the model's nodes, then the delegate nodes, each with its registration.
        execution_plan: indices into ``nodes``, in execution order.
        applied: delegates in force, in order.
        undone: delegates that a resize has removed, and that are applied again before the next
            allocation.
        owner: mapping from each replaced node to the delegate node that replaced it.
        absorbed: other subgraphs that delegate nodes of this subgraph compute as a whole.
        application: the delegate that is being applied; None if no delegate is being applied.
    """

    def __init__(
        self, nodes: Sequence[tuple[Node, Registration]], partitioner: PartitionerArguments
    ) -> None:
        self.nodes = list(nodes)
        self.execution_plan = list(range(len(self.nodes)))
        self.applied: list[AppliedDelegate] = []
        self.undone: list[AppliedDelegate] = []
        self.owner: dict[int, int] = {}
        self.absorbed: frozenset[int] = frozenset()
        self.application: Application | None = None
        self._partitioner_arguments = partitioner
        # Arguments and result of the last preview.
        self._last_cut: tuple[object, list[NodeSubset]] = (None, [])

    @cached_property
    def _partitioner(self) -> PlanPartitioner:
        from delegraph.runtime.delegates.plan_partitions import PlanPartitioner

        return PlanPartitioner(*self._partitioner_arguments)

    # -- reading -------------------------------------------------------------------------------

    def node(self, index: int) -> tuple[Node, Registration]:
        """Return the node with *index*, and its registration."""
        return self.nodes[index]

    def steps(self) -> Iterator[tuple[Node, Registration]]:
        """Yield nodes and registrations in execution order."""
        return map(self.nodes.__getitem__, self.execution_plan)

    @property
    def has_unresolved(self) -> bool:
        """Whether the plan has a custom operator without an implementation."""
        return any(registration.is_unresolved for _, registration in self.steps())

    def static_delegates(self) -> list[Delegate]:
        """Return the applied delegates that need every shape before invoke."""
        if not self.applied:
            return []
        from delegraph.delegation.delegate import DelegateFlags

        dynamic = DelegateFlags.ALLOW_DYNAMIC_TENSORS
        return [a.delegate for a in self.applied if not a.delegate.flags & dynamic]

    def current(self, index: int) -> int:
        """Return the index in the present plan of the node that computes model node *index*."""
        while index in self.owner:
            index = self.owner[index]
        return index

    def delegate_of(self, index: int) -> str | None:
        """Return the name of the delegate of model node *index*; None if it has none."""
        delegate: Any = self.nodes[self.current(index)][0].delegate
        return None if delegate is None else delegate_name(delegate)

    def model_nodes(self, node: Node) -> Iterator[tuple[Node, Registration]]:
        """Yield the model's nodes that a node computes, also through nested delegate nodes."""
        waiting = [node.index]
        while waiting:
            inner, registration = self.nodes[waiting.pop()]
            if inner.delegate is None:
                yield inner, registration
            else:
                waiting += reversed(inner.options.nodes_to_replace)

    def producer(self, tensor: int) -> int:
        """Return the index of the node that writes a tensor; -1 if no node does."""
        return next((node.index for node, _ in self.steps() if tensor in node.outputs), -1)

    def control_edges(self) -> list[ControlEdge]:
        """Return the model's control edges as positions in the present plan."""
        return self._partitioner.moved_edges(self.execution_plan, self.current) or []

    # -- what a delegate may do ----------------------------------------------------------------

    def preview(self, nodes: Sequence[int], context: DelegateContext) -> list[DelegateParams]:
        """Return the partitions that *nodes* would form.

        See ``DelegateContext.preview_delegate_partitioning``.
        """
        barred = {} if self.application is None else self.application.barred
        subsets = self._subsets([index for index in nodes if index not in barred])
        return [_params(s, None, context) for s in subsets if s.type == "kTfPartition"]

    def replace(
        self,
        registration: Registration,
        nodes: Sequence[int],
        delegate: object,
        context: DelegateContext,
    ) -> None:
        """Replace *nodes* by delegate nodes, one per partition, all with *registration*.

        See ``DelegateContext.replace_node_subsets_with_delegate_kernels``.

        If the method fails, the list may contain some new nodes; the caller must restore a
        snapshot.
        """
        from delegraph.delegation.delegate import raise_if_requested

        application = self._claiming("nodes can be replaced")
        subsets = self._subsets([index for index in nodes if index not in application.barred])
        if not subsets:
            return
        registration = replace(registration, builtin_code=BuiltinOperator.DELEGATE)
        registration = application.wrapped(registration)
        plan: list[int] = []
        for subset in subsets:
            if subset.type == "kTfPartition":
                raise_if_requested(context)
                params = _params(subset, delegate, context)
                plan.append(self._add_delegate_node(registration, params))
            else:
                plan += subset.nodes
        self.execution_plan = plan
        self._last_cut = None, []

    def _subsets(self, wanted: Sequence[int]) -> list[NodeSubset]:
        if not wanted:
            return []
        # A preview is often followed by a replacement of the same nodes.
        asked = list(wanted), list(self.execution_plan), [node.inputs for node, _ in self.nodes]
        if asked != self._last_cut[0]:
            subsets = self._partitioner.subsets(
                self.nodes, self.execution_plan, self.current, wanted
            )
            self._last_cut = asked, subsets
        return self._last_cut[1]

    def _add_delegate_node(self, registration: Registration, params: DelegateParams) -> int:
        index = len(self.nodes)
        node = Node(
            index,
            params.input_tensors,
            params.output_tensors,
            options=params,
            delegate=params.delegate,
        )
        self.nodes.append((node, registration))
        for replaced in params.nodes_to_replace:
            self.owner[replaced] = index
        for output in params.output_tensors:
            params.context.tensors[output].delegate = params.delegate
        if registration.init is not None:
            try:
                node.user_data = registration.init(params.context, node)
            except Exception as error:
                raise DelegateError(
                    f"its kernel for nodes {list(params.nodes_to_replace)}: {in_words(error)}",
                    phase="init",
                    node_index=index,
                ) from error
        return index

    def absorb(self, other: int) -> None:
        """Record that a node of the delegate being applied computes the whole subgraph *other*.

        See ``DelegateContext.mark_subgraph_as_delegation_skippable``.
        """
        self._claiming("a subgraph can be absorbed")
        self.absorbed |= {other}

    def _claiming(self, what: str) -> Application:
        if self.application is None or not self.application.may_claim:
            raise DelegateError(f"{what} only while a delegate is being applied")
        return self.application

    # -- going back ----------------------------------------------------------------------------

    def snapshot(self) -> PlanSnapshot:
        """Return a snapshot from which :meth:`restore` restores the present plan."""
        from delegraph.runtime.delegates.plan_state import PlanSnapshot

        return PlanSnapshot(
            len(self.nodes),
            list(self.execution_plan),
            list(self.applied),
            list(self.undone),
            [node.inputs for node, _ in self.nodes],
            dict(self.owner),
            self.absorbed,
        )

    def restore(self, snapshot: PlanSnapshot) -> None:
        """Restore the plan *snapshot*; free delegate nodes that were added since.

        After an interrupt the method can be called again.
        """
        self.execution_plan = list(snapshot.execution_plan)
        self.applied = list(snapshot.applied)
        self.undone = list(snapshot.undone)
        self.owner = dict(snapshot.owner)
        self.absorbed = snapshot.absorbed
        for (node, _), inputs in zip(self.nodes, snapshot.node_inputs, strict=False):
            node.inputs = inputs  # a delegate may have let nodes read other tensors
        self._free(snapshot.num_nodes)

    def close(self) -> None:
        """Free all nodes and clear the plan."""
        self._free(0)
        self.execution_plan.clear()
        self.applied.clear()
        self.undone.clear()

    def _free(self, first: int) -> None:
        """Free and remove the nodes from index *first* on."""
        removed = self.nodes[first:]
        del self.nodes[first:]
        for node, registration in removed:
            if registration.free is not None:
                try:
                    registration.free(node.user_data)
                    node.user_data = None  # freeing it may use the node
                except Exception as error:  # noqa: BLE001 - a plugin's, and the rest must be freed
                    logger.warning("%s failed to free: %s", registration.name, in_words(error))


def _params(
    subset: NodeSubset, delegate: object | None, context: DelegateContext
) -> DelegateParams:
    from delegraph.delegation.delegate import DelegateParams

    return DelegateParams(
        delegate,
        tuple(subset.nodes),
        tuple(subset.input_tensors),
        tuple(subset.output_tensors),
        context,
    )


def delegate_name(delegate: Delegate) -> str:
    """Return a delegate's name, or the name of its type if ``name()`` fails."""
    try:
        return str(delegate.name())
    except Exception:  # noqa: BLE001 - a plugin's method, and the error at hand matters more
        return type(delegate).__name__
