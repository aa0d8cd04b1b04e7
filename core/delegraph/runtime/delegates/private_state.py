"""Shapes, memory and owners of tensors that only the original nodes of a partition see."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from numpy.typing import DTypeLike

from delegraph.errors import OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.operators.registration import Node, Scratch
from delegraph.operators.tensor import Tensor
from delegraph.runtime.context import SubgraphContext
from delegraph.runtime.subgraph_memory import SubgraphMemory, checked_shape

if TYPE_CHECKING:
    from delegraph.runtime.subgraph import Subgraph


class PrivateState:
    """What a tensor is to the original nodes, while it is something else to everybody.

    Attributes:
        tensor: the tensor.
        shape: its shape.
        data: its values.
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
        """Exchange this state with that of the tensor."""
        tensor = self.tensor
        self.shape, tensor.shape = tensor.shape, self.shape
        self.data, tensor.data = tensor.data, self.data
        self._allocation, tensor.allocation_type = tensor.allocation_type, self._allocation
        owner = tensor.delegate, tensor.buffer_handle, tensor.data_is_stale
        tensor.delegate, tensor.buffer_handle, tensor.data_is_stale = self._owner
        self._owner = owner


class PrivateContext(SubgraphContext):
    """The subgraph's context, except that shapes and memory are those of the original nodes.

    Attributes:
        memory: arena and workspace of the original nodes.
        open: outputs of the node being prepared whose shape stays open.
    """

    def __init__(self, subgraph: Subgraph, written: Collection[int]) -> None:
        super().__init__(subgraph)
        self.memory = SubgraphMemory(
            preserve_all_tensors=False, limit=subgraph.session.memory_limit
        )
        self.open: set[int] = set()
        self._written = written
        self._is_running = False

    def begin_node(self, node: Node) -> None:
        """Get ready for the preparation of *node*."""
        self.open = {i for i in node.outputs if i >= 0 and self.tensors[i].is_dynamic}
        self.memory.workspace.begin_node()

    @contextmanager
    def running(self, is_running: bool = True) -> Iterator[None]:
        """Let kernels resize dynamic tensors, and nothing else, within the context."""
        before, self._is_running = self._is_running, is_running
        try:
            yield
        finally:
            self._is_running = before

    def preparing(self) -> AbstractContextManager[None]:
        """Let kernels resize what they write, within the context."""
        return self.running(False)

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        """Set the shape of a tensor that the original nodes write."""
        dims = checked_shape(tensor, shape, self.memory.limit)
        may_change = tensor.is_dynamic if self._is_running else tensor.index in self._written
        if dims != tensor.shape and not may_change:
            raise OperatorError(f"{tensor!r} cannot become {list(dims)}")
        if self._is_running:
            if tensor.is_dynamic and (tensor.data is None or tensor.shape != dims):
                tensor.shape = dims
                self.memory.allocate_dynamic(tensor)
            return
        tensor.shape = dims
        if tensor.type in OBJECT_TYPES and tensor.index in self._written:
            self.open.discard(tensor.index)
            self.memory.allocate_dynamic(tensor)

    def set_dynamic(self, tensor: Tensor) -> None:
        """Declare that a tensor's shape is known only while running."""
        tensor.make_dynamic()
        self.open.add(tensor.index)

    def scratch(self, shape: Sequence[int], dtype: DTypeLike) -> Scratch:
        """Reserve working memory of the original nodes' own."""
        return self.memory.workspace.reserve(shape, dtype)
