"""The nodes that a delegate node replaced, computed by Delegraph's own kernels.

A partition's inner tensors have no memory while a delegate computes them, and the delegate decides
the shapes of its outputs. So the original nodes work on a state of their own: for as long as they
are prepared or run, every tensor they write has another shape, memory and owner, and what the
delegate sees is put back afterwards. Constants, inputs, variables and resources are shared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from delegraph.delegation.delegate import DelegateParams
from delegraph.errors import OperatorError, UnresolvedOpError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.operators.registration import Eval, Node, Registration
from delegraph.runtime.delegates.private_state import PrivateContext, PrivateState
from delegraph.runtime.node_errors import node_error
from delegraph.runtime.threads import BlasThreads

if TYPE_CHECKING:
    from delegraph.runtime.subgraph import Subgraph

Step = tuple[Node, Registration]


class OriginalNodes:
    """The original nodes of one delegate node; nothing is prepared before it is needed.

    A node of an earlier delegate that the partition contains is run by that delegate, or, with
    *only_kernels*, by its own original nodes where all of them have a kernel.

    Attributes:
        nodes: nodes and registrations in execution order, their inputs as the model has them.
        inputs: tensors that are read and not written, constants and variables among them.
        outputs: what :meth:`run` computes: the delegate node's outputs.
    """

    def __init__(
        self, subgraph: Subgraph, delegate_node: Node, *, only_kernels: bool = False
    ) -> None:
        self._subgraph = subgraph
        self.nodes = _original_nodes(subgraph, delegate_node, only_kernels)
        written = {i: node for node, _ in self.nodes for i in node.outputs if i >= 0}
        read = dict.fromkeys(i for node, _ in self.nodes for i in node.inputs if i >= 0)
        self.inputs = tuple(i for i in read if i not in written)
        self.outputs = tuple(i for i in delegate_node.outputs if i >= 0)
        self._states = [
            PrivateState(subgraph.tensors[i], node.delegate) for i, node in written.items()
        ]
        self._state_of = {state.tensor.index: state for state in self._states}
        self._context = PrivateContext(subgraph, self._state_of)
        self._uses_blas = any(registration.uses_blas for _, registration in self.nodes)
        self._steps: list[Eval] = []
        self._stop: int | None = None  # nodes from here on have shapes known only while invoking
        self._known: set[int] = set()  # tensors whose shape is known when they are prepared
        self._prepared_for: object = None
        self._has_memory = False

    def result(self, index: int) -> PrivateState:
        """Return what the last :meth:`run` (or the preparation) made of an output."""
        return self._state_of[index]

    # -- preparing -----------------------------------------------------------------------------

    def prepare(self) -> None:
        """Prepare the nodes for the present shapes of the inputs and give them memory.

        Nodes behind a shape that is known only while invoking are prepared by :meth:`run`.

        Raises:
            UnresolvedOpError: a custom operator without a kernel is among them.
            NodeError: a kernel refuses its node, or the tensors do not fit in memory.
        """
        with self.as_computed():
            self._prepare_all()
            self._allocate_all()

    def work_out_shapes(self) -> None:
        """Prepare the nodes, without memory; :meth:`result` then has the shapes.

        Raises:
            UnresolvedOpError: a custom operator without a kernel is among the nodes.
            NodeError: a kernel refuses its node.
        """
        with self.as_computed():
            self._prepare_all()

    def propagate_shapes(self) -> None:
        """Give every tensor of the partition the shape that Delegraph's kernels work out.

        Shapes known only while invoking are left alone. Nothing gets memory.

        Raises:
            UnresolvedOpError: a custom operator without a kernel is among the nodes.
            NodeError: a kernel refuses its node.
        """
        self.work_out_shapes()
        for state in self._states:
            if not self.is_open(state.tensor.index):
                state.tensor.shape = state.shape

    def is_open(self, index: int) -> bool:
        """Whether the shape of a written tensor is known only while invoking; once prepared."""
        return self._stop is not None and index in self._state_of and index not in self._known

    def _prepare_all(self) -> None:
        self._prepared_for = None
        self._steps.clear()
        self._has_memory = False
        for state in self._states:
            state.tensor.make_static()
        self._prepare_from(0)
        self._stop = len(self._steps) if self._context.open else None
        ready = self.nodes[: len(self._steps)]
        self._known = {i for node, _ in ready for i in node.outputs} - self._context.open
        self._prepared_for = self._input_shapes()

    def _prepare_from(self, first: int) -> None:
        """Prepare nodes up to the first whose output shapes stay open."""
        context = self._context
        for node, registration in self.nodes[first:]:
            context.begin_node(node)
            self._steps.append(self._prepared(node, registration))
            if context.open:
                return

    def _prepared(self, node: Node, registration: Registration) -> Eval:
        if registration.is_unresolved:
            raise UnresolvedOpError(
                f"Node number {node.index} ({registration.name}) has no kernel, so nobody but the "
                "delegate can compute it",
                node_index=node.index,
                op=registration.name,
            )
        try:
            step = registration.prepare(self._context, node)
        except Exception as error:
            raise node_error(node, registration, "prepare", error) from error
        return self._reading_buffers(step, node)

    def _reading_buffers(self, step: Eval, node: Node) -> Eval:
        """Return *step* preceded by copies of inputs that some delegate may alone have up to date.

        Unlike in the plan, the owner does not matter: whose partition these nodes were is out.
        """
        tensors = [self._subgraph.tensors[i] for i in node.inputs if i >= 0]
        kept = [t for t in tensors if t.delegate is not None and t.delegate is not node.delegate]
        if not kept:
            return step

        def step_on_readable_inputs() -> None:
            for tensor in kept:
                self._subgraph.buffers.make_readable(tensor)
            step()

        return step_on_readable_inputs

    def _input_shapes(self) -> object:
        tensors = self._subgraph.tensors
        return [(tensors[i].shape, tensors[i].allocation_type) for i in self.inputs]

    def _allocate_all(self) -> None:
        position = {state.tensor.index: i for i, state in enumerate(self._states)}

        def numbered(tensors: Iterable[int]) -> tuple[int, ...]:
            """Return where the tensors are among those that get memory; -1 for the others."""
            return tuple(position.get(index, -1) for index in tensors)

        nodes = [
            (replace(n, inputs=numbered(n.inputs), outputs=numbered(n.outputs)), registration)
            for n, registration in self.nodes
        ]
        tensors = [state.tensor for state in self._states]
        self._context.memory.plan(tensors, nodes, (), numbered(self.outputs), ())
        self._allocate(0)
        self._has_memory = True

    def _allocate(self, first: int) -> None:
        last = len(self._steps) - 1
        try:
            self._context.memory.allocate(first, last)
        except OperatorError as error:
            raise node_error(*self.nodes[last], "allocate", error) from error

    # -- running -------------------------------------------------------------------------------

    def run(self) -> None:
        """Compute the outputs, into memory of their own; :meth:`deliver` hands them over.

        Prepares first where shapes have changed.

        Raises:
            UnresolvedOpError: a custom operator without a kernel is among them.
            NodeError: a kernel failed.
        """
        self.timed_run(time.perf_counter)

    def timed_run(self, clock: Callable[[], float]) -> float:
        """Do what :meth:`run` does; return the time by *clock* that the nodes themselves took."""
        threads = self._subgraph.session.options.num_threads
        with self.as_computed(), BlasThreads(threads) if self._uses_blas else nullcontext():
            if self._prepared_for != self._input_shapes():
                self._prepare_all()
            if not self._has_memory:
                self._allocate_all()
            with self._context.running(), np.errstate(all="ignore"):
                start = clock()
                self._run_all()
                return clock() - start

    def _run_all(self) -> None:
        done = 0
        if self._stop is not None:  # what follows was prepared for the shapes of another run
            del self._steps[self._stop :]
            self._context.memory.reset_after(self._stop - 1)
        while True:
            for position in range(done, len(self._steps)):
                self._run_step(position)
            done = len(self._steps)
            if done == len(self.nodes):
                break
            with self._context.preparing():
                self._prepare_from(done)
                self._allocate(done)
        for index in self.outputs:
            self._subgraph.buffers.make_readable(self._subgraph.tensors[index])

    def _run_step(self, position: int) -> None:
        try:
            self._steps[position]()
        except Exception as error:
            raise node_error(*self.nodes[position], "invoke", error) from error

    def deliver(self) -> None:
        """Copy the results of the last :meth:`run` to the delegate node's outputs.

        Raises:
            OperatorError: an output has static memory for another shape: the delegate gave it that.
        """
        for index in self.outputs:
            tensor, state = self._subgraph.tensors[index], self._state_of[index]
            if tensor.is_dynamic or tensor.type in OBJECT_TYPES:
                tensor.shape, tensor.data = state.shape, state.data.copy()
            elif tensor.data is None or tensor.data.shape != state.data.shape:
                raise OperatorError(
                    f"{tensor!r} was given that shape by its delegate; it is {list(state.shape)} "
                    "(validate=True finds this when tensors are allocated)"
                )
            else:
                np.copyto(tensor.data, state.data)
            tensor.data_is_stale = False

    @contextmanager
    def as_computed(self) -> Iterator[None]:
        """Let the tensors be, within the context, what these nodes make of them."""
        for state in self._states:
            state.exchange()
        try:
            yield
        finally:
            for state in self._states:
                state.exchange()


def _original_nodes(
    subgraph: Subgraph, delegate_node: Node, only_kernels: bool
) -> tuple[Step, ...]:
    """Return the nodes to compute; first those that make an input of constants alone.

    A delegate may take constants as they are stored and leave the DEQUANTIZE in front outside; the
    original nodes read its result, which nobody else may need and keep.
    """
    nodes = _replaced(subgraph, delegate_node, only_kernels)
    at_hand = {*delegate_node.inputs, *(i for node, _ in nodes for i in node.outputs)}
    missing = dict.fromkeys(i for node, _ in nodes for i in node.inputs if i not in at_hand)
    makers = _makers(subgraph, [i for i in missing if i >= 0])
    return (*(_original(subgraph, index) for index in makers), *nodes)


def _replaced(subgraph: Subgraph, delegate_node: Node, only_kernels: bool) -> list[Step]:
    params: DelegateParams = delegate_node.options
    nodes: list[Step] = []
    for index in params.nodes_to_replace:
        step = _original(subgraph, index)
        inner = [step]
        if only_kernels and step[0].delegate is not None:
            inner = _replaced(subgraph, step[0], only_kernels)
        has_kernels = not any(registration.is_unresolved for _, registration in inner)
        nodes += inner if has_kernels else [step]
    return nodes


def _original(subgraph: Subgraph, index: int) -> Step:
    """Return a node with the inputs that the model gives it, whatever a delegate made of them."""
    node, registration = subgraph.plan.node(index)
    operators = subgraph.spec.operators
    if index < len(operators) and node.inputs != operators[index].inputs:
        node = replace(node, inputs=operators[index].inputs)
    return node, registration


def _makers(subgraph: Subgraph, wanted: Sequence[int]) -> list[int]:
    """Return the model's nodes that compute tensors from constants, in execution order."""
    maker = {i: op for op in subgraph.spec.operators for i in op.outputs} if wanted else {}
    found: set[int] = set()
    pending = list(wanted)
    while pending:
        operator = maker.get(pending.pop())
        if operator is not None and operator.index not in found:
            found.add(operator.index)
            pending += operator.inputs
    return sorted(found)
