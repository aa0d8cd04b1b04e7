"""The nodes that a delegate node replaced, computed by Delegraph's own kernels.

A partition's inner tensors have no memory while a delegate computes them, and the delegate decides
the shapes of its outputs. So the original nodes use private shapes and memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import numpy as np

from delegraph.errors import OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.lazy_dataclass import replace
from delegraph.operators.registration import Eval, Node, Registration
from delegraph.runtime.delegates.node_facts import KnownTensor
from delegraph.runtime.delegates.private_state import PrivateNodes, PrivateState
from delegraph.runtime.delegates.replaced_nodes import original_nodes
from delegraph.runtime.subgraph import Subgraph

if TYPE_CHECKING:
    from delegraph.delegation.partition_tolerance import ComputedNode


class OriginalNodes(PrivateNodes):
    """Runs by Delegraph's kernels the nodes that a delegate node replaced.

    The results are compared with the delegate's, or used in their place. The partition may contain
    a node of an earlier delegate. By default, that delegate runs it.

    Args:
        subgraph: subgraph of the delegate node.
        delegate_node: the delegate node.
        only_kernels: whether kernels also run the nodes of an earlier delegate, if every node has a
            kernel.
        notes_results: whether :meth:`run` fills ``computed``.

    Attributes:
        inputs: tensors that the nodes read and do not write, constants and variables included.
        outputs: outputs of the delegate node, which :meth:`run` computes.
        computed: results of each node in the last :meth:`run`, if *notes_results* is set.
    """

    def __init__(
        self,
        subgraph: Subgraph,
        delegate_node: Node,
        *,
        only_kernels: bool = False,
        notes_results: bool = False,
    ) -> None:
        nodes = original_nodes(subgraph, delegate_node, only_kernels=only_kernels)
        session = subgraph.session
        super().__init__(subgraph.context, nodes, session.memory_limit, session.cancellation)
        self._subgraph = subgraph
        read = dict.fromkeys(i for node, _ in nodes for i in node.inputs if i >= 0)
        self.inputs = tuple(i for i in read if i not in self.states)
        self.outputs = tuple(i for i in delegate_node.outputs if i >= 0)
        self._uses_blas = any(registration.uses_blas for _, registration in nodes)
        self._prepared_for: object = None
        self._has_memory = False
        self._notes_results = notes_results
        self.computed: list[ComputedNode] = []

    def result(self, index: int) -> PrivateState:
        """State of the output *index* after the last :meth:`run`, or after the preparation."""
        return self.states[index]

    @contextmanager
    def as_computed(self) -> Iterator[None]:
        """Context in which the tensors have the values that these nodes computed."""
        self._subgraph.steps.settle()
        with super().as_computed():
            yield

    # -- preparing -----------------------------------------------------------------------------

    def _prepare_all(self) -> None:
        self._prepared_for = None
        self._has_memory = False
        super()._prepare_all()
        self._prepared_for = self._known_inputs()

    def _prepared(self, node: Node, registration: Registration) -> Eval:
        """Return the node's eval, preceded by copies of inputs from delegates' buffers.

        Unlike in the plan, inputs are also copied from the buffers of the node's own delegate,
        since the original nodes do not read its buffers.
        """
        run = super()._prepared(node, registration)
        tensors = [self._subgraph.tensors[i] for i in node.inputs if i >= 0]
        kept = [t for t in tensors if t.delegate is not None and t.delegate is not node.delegate]
        run = self._subgraph.buffers.reading_first(kept, run)
        return self._noting(node, registration.name, run) if self._notes_results else run

    def _noting(self, node: Node, operator: str, run: Eval) -> Eval:
        """Return *run*, extended to record the outputs of *node* after it."""
        from delegraph.delegation.partition_tolerance import ComputedNode

        notes, tensors = self.computed, self._subgraph.tensors  # not self: a cycle would result

        def run_and_note() -> None:
            run()
            notes.append(ComputedNode.of(operator, node, tensors))

        return run_and_note

    def _known_inputs(self) -> object:
        tensors = [self._subgraph.tensors[i] for i in self.inputs]
        return [(KnownTensor.of(tensor), tensor.allocation_type) for tensor in tensors]

    def _allocate(self) -> None:
        position = {index: i for i, index in enumerate(self.states)}

        def numbered(tensors: Iterable[int]) -> tuple[int, ...]:
            """Return the positions of *tensors* among the tensors with memory; -1 for others."""
            return tuple(position.get(index, -1) for index in tensors)

        nodes = [
            (replace(n, inputs=numbered(n.inputs), outputs=numbered(n.outputs)), registration)
            for n, registration in self.nodes
        ]
        tensors = [state.tensor for state in self.states.values()]
        self.memory.plan(tensors, nodes, (), numbered(self.outputs), ())
        self.steps.allocate()
        self._has_memory = True

    # -- running -------------------------------------------------------------------------------

    def run(self) -> None:
        """Compute the outputs in private memory; :meth:`deliver` copies them to the tensors.

        Nodes whose shapes have changed are prepared first.

        Raises:
            UnresolvedOpError: a custom operator without a kernel is among the nodes.
            NodeError: a kernel failed.
        """
        self.timed_run(time.perf_counter)

    def timed_run(self, clock: Callable[[], float]) -> float:
        """Compute the outputs in private memory; return the nodes' run time in units of *clock*."""
        from delegraph.runtime.execution.blas_threads import BlasThreads

        threads = self._subgraph.session.options.num_threads
        with self.as_computed(), BlasThreads(threads) if self._uses_blas else nullcontext():
            if self._prepared_for != self._known_inputs():
                self._prepare_all()
            if not self._has_memory:
                self._allocate()
            self.computed.clear()
            with np.errstate(all="ignore"):
                start = clock()
                self.steps.run()
                for index in self.outputs:
                    self._subgraph.readable(index)
                return clock() - start

    def deliver(self) -> None:
        """Copy the results of the last :meth:`run` to the outputs of the delegate node.

        Raises:
            OperatorError: an output has static memory for another shape, which the delegate set.
        """
        for index in self.outputs:
            tensor, state = self._subgraph.tensors[index], self.states[index]
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
