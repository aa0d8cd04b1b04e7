"""Nodes that run on private state: shapes, memory and owners that other nodes do not see."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.registration import (
    Eval,
    Node,
    OpContext,
    Registration,
    Scratch,
)
from delegraph.operators.tensor import Tensor
from delegraph.runtime.execution.calls import Cancellation
from delegraph.runtime.execution.node_errors import require_kernel
from delegraph.runtime.execution.steps import Step, StepRunner
from delegraph.runtime.subgraph_memory import SubgraphMemory

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class PrivateState:
    """A second, private shape and value of a tensor, exchanged with those that all nodes see.

    Attributes:
        tensor: the tensor.
        shape: shape in the state that the tensor does not have at present.
        data: values in the state that the tensor does not have at present.
    """

    __slots__ = ("_allocation", "_owner", "data", "shape", "tensor")

    def __init__(self, tensor: Tensor, delegate: object | None) -> None:
        self.tensor = tensor
        self.shape = tensor.shape
        self.data: Any = None
        self._allocation = tensor.allocation_type
        handle = tensor.buffer_handle if tensor.delegate is delegate else -1
        self._owner: tuple[object | None, int, bool] = delegate, handle, False

    def exchange(self) -> None:
        """Exchange the tensor's shape and value with those in this object."""
        tensor = self.tensor
        self.shape, tensor.shape = tensor.shape, self.shape
        self.data, tensor.data = tensor.data, self.data
        self._allocation, tensor.allocation_type = tensor.allocation_type, self._allocation
        owner = tensor.delegate, tensor.buffer_handle, tensor.data_is_stale
        tensor.delegate, tensor.buffer_handle, tensor.data_is_stale = self._owner
        self._owner = owner


class PrivateContext:
    """A host's context in which shapes and memory belong to the private nodes alone.

    Attributes:
        is_only_checked: see :func:`delegraph.operators.registration.is_only_checked`.
    """

    def __init__(
        self, host: OpContext, steps: StepRunner, memory: SubgraphMemory, is_only_checked: bool
    ) -> None:
        self.is_only_checked = is_only_checked
        self._host = host
        self._steps = steps
        self._memory = memory

    @property
    def memory_limit(self) -> MemoryLimit:
        """Limit that a kernel must check before it allocates memory itself."""
        return self._memory.limit

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        """Set the shape of a tensor that the private nodes write."""
        self._steps.resize_tensor(tensor, shape)

    def set_dynamic(self, tensor: Tensor) -> None:
        """Declare that a tensor's shape is known only while running."""
        self._steps.set_dynamic(tensor)

    def scratch(self, shape: Sequence[int], dtype: DTypeLike) -> Scratch:
        """Reserve working memory of *shape* and *dtype* for the private nodes."""
        return self._memory.workspace.reserve(shape, dtype)

    def __getattr__(self, name: str) -> Any:
        """Return attribute *name* of the host's context, for members that this class lacks."""
        return getattr(self._host, name)


class PrivateNodes:
    """Nodes of a subgraph that are prepared or run on a private state of the tensors.

    While the nodes are prepared or run, every tensor that they write has a private shape, memory
    and owner. Constants, inputs, variables and resources are shared.

    Args:
        host: context of the subgraph.
        nodes: nodes and registrations in execution order.
        limit: maximal number of bytes of the nodes' tensors.
        cancellation: stop request that is read between nodes; None if nothing can stop them.
        is_only_checked: whether the nodes are prepared, but never run.

    Attributes:
        nodes: the argument *nodes*.
        states: private state of each tensor that the nodes write, by tensor index.
        memory: arena and scratch memory of the nodes.
        steps: runner that prepares and runs the nodes, within :meth:`as_computed`.
    """

    def __init__(
        self,
        host: OpContext,
        nodes: Sequence[Step],
        limit: MemoryLimit,
        cancellation: Cancellation | None = None,
        *,
        is_only_checked: bool = False,
    ) -> None:
        self.nodes = nodes
        written = {i: node for node, _ in nodes for i in node.outputs if i >= 0}
        self.states = {i: PrivateState(host.tensors[i], n.delegate) for i, n in written.items()}
        self.memory = SubgraphMemory(preserve_all_tensors=False, limit=limit)
        this = weakref.proxy(self)  # no cycle: memory must be freed with the last reference
        self.steps = StepRunner(
            host.tensors,
            lambda node, registration: this._prepared(node, registration),
            self.memory,
            resizable=self.states,
            cancellation=cancellation,
        )
        context = PrivateContext(host, weakref.proxy(self.steps), self.memory, is_only_checked)
        self._context = cast(OpContext, context)  # all other members are the host's
        self._open: frozenset[int] = frozenset()

    @contextmanager
    def as_computed(self) -> Iterator[None]:
        """Give the tensors their private state during the block, then their public state."""
        for state in self.states.values():
            state.exchange()
        try:
            yield
        finally:
            for state in self.states.values():
                state.exchange()

    def work_out_shapes(self) -> None:
        """Prepare the nodes up to the first one with an unknown shape; allocate no memory.

        Raises:
            UnresolvedOpError: a custom operator without a kernel is among the nodes.
            NodeError: a kernel rejects its node.
        """
        with self.as_computed():
            self._prepare_all()

    def _prepare_all(self) -> None:
        self._open = frozenset()
        for state in self.states.values():
            state.tensor.make_static()
        self.steps.prepare(self.nodes)
        self._open = frozenset(self.states) - self.steps.known_outputs()

    def is_open(self, index: int) -> bool:
        """Whether the shape of tensor *index*, which the nodes write, is known only while running.

        The result is valid after the preparation.
        """
        return index in self._open

    def _prepared(self, node: Node, registration: Registration) -> Eval:
        require_kernel(node, registration)
        return registration.prepare(self._context, node)
