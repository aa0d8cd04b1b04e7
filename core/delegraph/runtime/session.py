"""A loaded model with its running subgraphs and applied delegates.

Modules that only delegates, rules or profiles need are imported when they are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.collector import collector_paused
from delegraph.errors import (
    ArgumentError,
    ArgumentTypeError,
    CallCancelledError,
    OperatorError,
    ResizeError,
)
from delegraph.runtime.arguments import checked_flag, subgraph_at, tensor_at
from delegraph.runtime.context import SubgraphCallee, SubgraphState
from delegraph.runtime.delegated_plan import delegate_name
from delegraph.runtime.details import in_brief
from delegraph.runtime.shared_state import SharedState
from delegraph.runtime.subgraph import Subgraph
from delegraph.runtime.tensor_access import require_resizable, write_tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from delegraph.delegation.delegate import Delegate
    from delegraph.delegation.placement import Placement
    from delegraph.delegation.rules import PlacementRules
    from delegraph.graph.model import Model
    from delegraph.operators.custom_op import AnyCustomOp
    from delegraph.operators.registration import CallableSubgraph
    from delegraph.operators.tensor import Tensor
    from delegraph.runtime.bound_state import BoundState
    from delegraph.runtime.delegates.delegate_stack import DelegateStack
    from delegraph.runtime.delegates.plan_state import Barred, Snapshot
    from delegraph.runtime.execution.profile import Profile
    from delegraph.runtime.options import InterpreterOptions
    from delegraph.runtime.preserved_tensors import PreservedTensors


class Session(SharedState):
    """Running subgraphs of a model, with the state that they share.

    Attributes:
        subgraphs: the subgraphs, in the model's order.
        delegates: the applied delegates, in order.
        rest: the default delegate, which claims nodes that others rejected, or None.
        bound_states: states of signatures that lie in arrays of the caller, by subgraph.
    """

    def __init__(
        self,
        model: Model,
        options: InterpreterOptions,
        custom_ops: Mapping[str, AnyCustomOp] | None = None,
        rules: PlacementRules | None = None,
    ) -> None:
        super().__init__(model, options, custom_ops, rules)
        self.delegates: list[Delegate] = []
        self.rest: Delegate | None = None
        with collector_paused(lasting=sum(len(spec.operators) for spec in model.subgraphs)):
            self.subgraphs = [Subgraph(spec, self) for spec in model.subgraphs]
        self.bound_states: dict[int, BoundState] = {}
        self._stacks: list[DelegateStack] = []  # one of each subgraph, once a delegate is applied
        self.contexts += [subgraph.context for subgraph in self.subgraphs]
        self.callees += [
            SubgraphCallee(subgraph, self.resize_input, self.allocate)
            for subgraph in self.subgraphs
        ]

    def __str__(self) -> str:
        """Return inputs, outputs and delegates of the model on one line."""
        first, count = self.subgraphs[0], len(self.subgraphs[0].operators)
        applied = ", ".join(delegate_name(applied.delegate) for applied in first.plan.applied)
        return (
            f"of {in_brief(first.tensors, first.inputs)} -> "
            f"{in_brief(first.tensors, first.outputs)}, {count} operator{'s' * (count != 1)}, "
            f"{applied or 'no delegates'}, {first.state.value}"
        )

    def allocate(self, subgraph: Subgraph) -> None:
        """Apply the delegates again that a resize has removed, then allocate a subgraph.

        Subgraphs that this one calls are allocated when its nodes are prepared.

        Raises:
            DelegateError: a delegate cannot be applied to the new shapes.
            NodeError: a node cannot be prepared, or the tensors do not fit in memory.
            UnresolvedOpError: custom operators have no implementation.
        """
        if subgraph.is_allocated and not subgraph.plan.undone:
            return
        if not self._stacks:
            subgraph.allocate()
            return
        self._stacks[subgraph.spec.index].allocate()
        if self.supervision.has_quarantined:
            from delegraph.runtime.delegates.default_failures import without_those_off

            self.delegates[:] = without_those_off(self.subgraphs, self.delegates)

    def allocate_first(self) -> None:
        """Check the placement against rules and ``require``, then allocate the first subgraph.

        Raises:
            PlacementError, DelegateError, NodeError, UnresolvedOpError: one of the two steps fails.
        """
        self.check_placement()
        self.allocate(self.subgraphs[0])

    def resize_tensor(self, subgraph: Subgraph, index: int, dims: ArrayLike, strict: bool) -> None:
        """Set the shape of a tensor to the user's shape *dims*.

        With *strict*, only dimensions that are -1 in ``shape_signature`` may change.

        Raises:
            ArgumentError: *dims* is not a list of dimensions.
            ArgumentTypeError: *index* is no integer, or *strict* is neither True nor False.
            ResizeError: the tensor does not exist, or cannot have the shape.
        """
        array = np.array(dims, dtype=np.int32)
        if array.ndim != 1:
            raise ArgumentError(f"Shape should be 1D instead of {array.ndim}.")
        strict, shape = checked_flag("strict", strict), array.tolist()
        try:
            tensor = tensor_at(subgraph.tensors, index)
            self.memory_limit.trust_shapes()
            if strict:
                require_resizable(tensor, shape)
            self.resize_input(subgraph, tensor.index, shape)
        except ArgumentTypeError:
            raise
        except (ArgumentError, OperatorError) as error:
            raise ResizeError(str(error)) from error

    def write(self, subgraph: Subgraph, index: int, value: ArrayLike) -> None:
        """Copy *value* into the tensor *index* of a subgraph, and into its delegate's buffer.

        Raises:
            ArgumentError: the tensor does not exist, has another dtype or shape, or no memory yet.
            DelegateError, NodeError: *value* differs from that of a constant input, and nodes
                cannot be prepared for it; the input keeps its old value.
        """
        tensor = tensor_at(subgraph.tensors, index)
        if tensor.is_constant and tensor.sparsity is None and tensor.index in subgraph.inputs:
            from delegraph.runtime.constant_inputs import write_constant

            kept = self._kept_data()
            write_constant(tensor, value, partial(self._exchange, subgraph, tensor, kept))
            return
        write_tensor(tensor, value)
        if tensor.delegate is not None:
            subgraph.buffers.write_through(tensor)

    def _exchange(
        self, subgraph: Subgraph, constant: Tensor, kept: Iterable[PreservedTensors], data: Any
    ) -> None:
        if self._stacks:
            self._stacks[subgraph.spec.index].look_again()
        subgraph.exchange_constant(constant, data)
        self._allocate_again(kept)

    def write_first(self, index: int, value: ArrayLike) -> None:
        """Copy *value* into a tensor of the first subgraph, and make later writes to it faster.

        Raises:
            ArgumentError, DelegateError, NodeError: *value* does not fit; see :meth:`write`.
        """
        first = self.subgraphs[0]
        if not first.shortcuts.copy_large(index, value):
            self.write(first, index, value)
            if index in first.inputs:
                first.shortcuts.add_target(first.tensors[index])

    def subgraph(self, index: int) -> Subgraph:
        """Return the subgraph with *index*.

        Raises:
            ArgumentError: the subgraph does not exist.
        """
        return subgraph_at(self.subgraphs, index)

    def callee(self, index: int) -> CallableSubgraph:
        """Return subgraph *index* as control flow uses it; its calls take the interpreter's lock.

        Raises:
            ArgumentError: the subgraph does not exist.
        """
        run, subgraph = self.calls.run, self.subgraph(index)
        return SubgraphCallee(
            subgraph,
            partial(run, "resize_input of a subgraph", self.resize_input),
            partial(run, "allocate of a subgraph", self.allocate),
            partial(run, "invoke of a subgraph", subgraph.invoke),
        )

    def resize_input(self, subgraph: Subgraph, index: int, shape: Sequence[int]) -> None:
        """Give the tensor *index* of a subgraph another shape; :meth:`allocate` must follow.

        Raises:
            OperatorError: the tensor is a constant, or *shape* is negative or exceeds the limit.
        """
        if subgraph.is_resized_by(index, shape):
            if self._stacks:
                self._stacks[subgraph.spec.index].take_off_static()  # first: an interrupt may come
            subgraph.resize_input(index, shape)

    def close(self) -> None:
        """Free memory and delegates at once, without the garbage collector."""
        for subgraph in self.subgraphs:
            subgraph.close()
        lists = self.subgraphs, self._stacks, self.callees, self.contexts, self.delegates
        for held in (*lists, self.bound_states, self.resources, self.shared):
            held.clear()
        self.cancellation.close()

    def _take(self, profile: Profile | None) -> None:
        super()._take(profile)
        for subgraph in self.subgraphs:  # none if the session is closed
            subgraph.bind_invoke()

    @property
    def state(self) -> SubgraphState:
        """State of the first subgraph: whether it can be invoked or changed now."""
        return self.subgraphs[0].state

    def release_non_persistent_memory(self) -> None:
        """Free the first subgraph's memory, except variables, until the next allocation.

        Source:
            Interpreter::ReleaseNonPersistentMemory, tflite/core/interpreter.cc.
        """
        self.subgraphs[0].release_non_persistent_memory()

    def reset_variables(self) -> None:
        """Reset every variable of every subgraph, and the kept arrays of custom operators."""
        self.forget_kept_arrays()
        for subgraph in self.subgraphs:
            subgraph.reset_variables()

    def unresolved_custom_ops(self) -> set[str]:
        """Return the names of the custom operators that no kernel and no delegate computes."""
        return {
            registration.name
            for subgraph in self.subgraphs
            for _, registration in subgraph.plan.steps()
            if registration.is_unresolved
        }

    def apply_all(self, delegates: Iterable[Delegate]) -> None:
        """Apply *delegates* in order, and check the placement afterwards.

        Raises:
            DelegateError: a delegate failed.
            PlacementError: the placement breaks rules or ``require``.
        """
        for delegate in delegates:
            self.apply(delegate)
        self.check_placement()

    def apply(self, delegate: Delegate) -> None:
        """Apply a delegate to all subgraphs that may be delegated, or to none if it fails on one.

        An allocated subgraph stays allocated, and keeps the data of its inputs and variables.

        Raises:
            DelegateError: the delegate failed on a subgraph; all subgraphs are as they were before.
                A default delegate raises no error: see ``default_failures``.
        """
        if self.has_failed_by_default(delegate):
            return
        kept, count = self._kept_data(), len(self.delegates)
        before = [(subgraph, subgraph.snapshot()) for subgraph in self.subgraphs]
        try:
            with collector_paused():
                self._apply(delegate, {})
            if "measured" in (self.options.placement.partitions, delegate.partition_policy):
                from delegraph.runtime.delegates.measured_partitions import losing_nodes

                losing = losing_nodes(self.subgraphs, delegate)
                if any(losing.values()):
                    _restore(before)
                    self._apply(delegate, losing)
            self._allocate_again(kept)
            self.delegates.append(delegate)
        except BaseException as error:
            _restore(before)
            del self.delegates[count:]
            self.cancellation.forget()  # restore the former state
            self._allocate_again(kept)
            is_failure = isinstance(error, Exception) and not isinstance(error, CallCancelledError)
            if not (is_failure and self.is_by_default(delegate)):
                raise
            from delegraph.runtime.delegates import default_failures

            if default_failures.not_applied(self.subgraphs[0], delegate, error):
                self.delegates.append(delegate)
                for stack in self._stacks:
                    stack.postpone(delegate)

    def _apply(self, delegate: Delegate, barred: Mapping[int, Barred]) -> None:
        from delegraph.runtime.delegates.delegate_stack import DelegateStack

        if not self._stacks:
            self._stacks = [DelegateStack(subgraph) for subgraph in self.subgraphs]
        absorbed: set[int] = set().union(*(subgraph.plan.absorbed for subgraph in self.subgraphs))
        for subgraph, stack in zip(self.subgraphs, self._stacks, strict=True):
            index = subgraph.spec.index
            if not subgraph.spec.is_validation and index not in absorbed:
                stack.apply(delegate, barred.get(index, {}))
                absorbed |= subgraph.plan.absorbed  # nodes of this subgraph compute these tensors

    def _kept_data(self) -> list[PreservedTensors]:
        from delegraph.runtime.preserved_tensors import PreservedTensors

        return [PreservedTensors(subgraph) for subgraph in self.subgraphs if subgraph.is_allocated]

    def _allocate_again(self, kept: Iterable[PreservedTensors]) -> None:
        for data in kept:
            self.allocate(data.subgraph)
            data.put_back()

    def remove(self, name: str) -> None:
        """Remove the delegates with a name, as if they had never been applied.

        The remaining delegates are applied again, since they may now take more nodes.

        Raises:
            ArgumentError: no applied delegate has that name.
            DelegateError: another delegate failed; that delegate and those after it are removed.
        """
        applied = list(self.delegates)
        names = list(map(delegate_name, applied))
        if name not in names:
            there = ", ".join(map(repr, names)) or "none"
            raise ArgumentError(f"no delegate {name!r} is applied; applied are: {there}")
        self.remove_all_delegates()
        for delegate in applied:
            if delegate_name(delegate) != name:
                self.apply(delegate)

    def remove_all_delegates(self) -> None:
        """Remove all delegates; allocated subgraphs stay allocated, with inputs and variables."""
        kept = self._kept_data()
        try:
            self._remove_all(kept)
        except BaseException:
            self.cancellation.forget()
            self._remove_all(kept)  # after an interrupt, remove the rest
            raise

    def _remove_all(self, kept: Iterable[PreservedTensors]) -> None:
        for stack in self._stacks:
            stack.remove_all()
        self.delegates.clear()
        self._allocate_again(kept)

    def placement(self) -> Placement:
        """Return the present placement: which delegate computes each node.

        Between a resize and the next allocation, a delegate that needs fixed shapes has no nodes.
        """
        from delegraph.runtime.delegates.placement import placement_of

        return placement_of(self.subgraphs, self.delegates, self.by_default, self.rest)

    def check_placement(self) -> None:
        """Raise an error if a pin of the rules, or ``require``, of the placement policy is not met.

        Raises:
            PlacementError: a pinned node, or a node that needs a delegate, runs elsewhere.
        """
        must_be_full = self.options.placement.require == "full"
        if self.rules is None and not must_be_full:
            return
        for stack in self._stacks:
            stack.reapply_named()
        placement = self.placement()
        if self.rules is not None:
            self.rules.check_pins(placement)
        if must_be_full:
            from delegraph.delegation.rules import require_full

            require_full(placement)


def _restore(before: Iterable[tuple[Subgraph, Snapshot]]) -> None:
    for subgraph, snapshot in before:
        subgraph.restore(snapshot)
