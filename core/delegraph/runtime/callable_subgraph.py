"""The view of a subgraph through which control-flow kernels call it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delegraph.operators.tensor import Tensor
from delegraph.runtime.subgraph import Subgraph


class SubgraphCallee:
    """The runtime's ``CallableSubgraph``, which resizes and allocates through the session.

    A new shape removes static delegates, and allocating applies them again first; both need the
    session. Invoking needs only the subgraph.

    Args:
        subgraph: the subgraph.
        resize_input: function that gives an input of the subgraph another shape.
        allocate: function that allocates the subgraph.
        invoke: function that runs the subgraph; None for the subgraph's own ``invoke``.
    """

    def __init__(
        self,
        subgraph: Subgraph,
        resize_input: Callable[[Subgraph, int, Sequence[int]], None],
        allocate: Callable[[Subgraph], None],
        invoke: Callable[[], None] | None = None,
    ) -> None:
        self._subgraph = subgraph
        self._resize_input = resize_input
        self._allocate = allocate
        self.inputs = subgraph.inputs
        self.outputs = subgraph.outputs
        self.tensors: Sequence[Tensor] = subgraph.tensors  # the list itself: delegates add to it
        self.operators = subgraph.operators
        self.invoke = subgraph.invoke if invoke is None else invoke
        self.readable = subgraph.readable

    @property
    def has_dynamic_tensors(self) -> bool:
        """Whether a shape is known only while invoking."""
        return self._subgraph.has_dynamic_tensors

    def resize_input(self, tensor_index: int, shape: Sequence[int]) -> None:
        """Give an input another shape; :meth:`allocate` must follow."""
        self._resize_input(self._subgraph, tensor_index, shape)

    def allocate(self) -> None:
        """Prepare the subgraph's nodes and allocate its tensors; cheap when nothing has changed."""
        self._allocate(self._subgraph)
