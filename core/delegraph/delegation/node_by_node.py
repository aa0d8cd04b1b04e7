"""Base class of kernels that compute the nodes of a partition one after the other."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.delegate import (
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    raise_if_requested,
)
from delegraph.delegation.simple_delegate import SimpleDelegateKernelInterface
from delegraph.errors import CallCancelledError, OperatorError, in_words
from delegraph.graph.dtypes import OBJECT_TYPES, byte_size
from delegraph.memory.arena import Allocation, SimpleMemoryArena
from delegraph.operators.registration import Eval, Node, Registration, Scratch
from delegraph.operators.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class NodeCall:
    """One node of a partition, passed to :meth:`NodeByNodeKernel.prepare_node`.

    The tensors may be kept. Whenever the node runs, their ``data`` holds the current values, also
    for tensors inside the partition. While preparing, only constants have data.

    Attributes:
        name: operator name, such as ``ADD`` or a custom operator's name.
        index: index of the node in the graph.
        options: typed options, such as ``AddOptions``; None if the node has none.
        node: the node itself.
        context: the host's context of the subgraph.
        inputs: tensor of each input; None for an absent optional input.
        outputs: tensor of each output.
    """

    def __init__(
        self,
        context: DelegateContext,
        node: Node,
        registration: Registration,
        inner: Mapping[int, Tensor],
    ) -> None:
        self.context = context
        self.node = node
        self.name = registration.name
        self.index = node.index
        self.options: Any = node.options
        tensors = context.tensors
        self.inputs = [None if i < 0 else inner.get(i) or tensors[i] for i in node.inputs]
        self.outputs = [inner.get(i) or tensors[i] for i in node.outputs]
        self._inner = inner

    def input(self, i: int) -> Tensor:
        """Return the tensor of input number *i*.

        Raises:
            OperatorError: the node has fewer inputs, or this input is absent.
        """
        found = self.inputs[i] if i < len(self.inputs) else None
        if found is None:
            raise OperatorError(f"input {i} is required and absent")
        return found

    def output(self, i: int = 0) -> Tensor:
        """Return the tensor of output number *i*.

        Raises:
            OperatorError: the node has fewer outputs.
        """
        if i >= len(self.outputs):
            raise OperatorError(f"output {i} is required; there are {len(self.outputs)}")
        return self.outputs[i]

    def resize(self, shape: Sequence[int], output: int = 0) -> None:
        """Set the shape of an output during prepare; by default it has its declared shape."""
        tensor = self.output(output)
        if tensor.index in self._inner:
            tensor.shape = tuple(map(int, shape))
        else:
            self.context.resize_tensor(tensor, shape)

    def scratch(self, shape: Sequence[int], dtype: DTypeLike) -> Scratch:
        """Return memory of *shape* and *dtype*; its ``data`` is valid only while the node runs."""
        return self.context.scratch(shape, dtype)


class NodeByNodeKernel(SimpleDelegateKernelInterface):
    """Computes a partition node by node; a subclass defines how to compute one node.

    ::

        class NegKernel(NodeByNodeKernel):
            def prepare_node(self, call):
                x, y = call.input(0), call.output()
                call.resize(x.shape)
                return lambda: np.negative(x.data, out=y.data)

    Tensors inside the partition get memory here; tensors that are not needed at the same time share
    it. If the delegate has the flag ``PER_OPERATOR_PROFILING``, a profile lists each node.
    """

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        """Store the nodes of the partition *params*."""
        nodes = [context.get_node_and_registration(i) for i in params.nodes_to_replace]
        self._inner = _InnerTensors(context, [node for node, _ in nodes], params.output_tensors)
        self._calls = [NodeCall(context, *found, self._inner.tensors) for found in nodes]
        self._steps: list[Eval] = []
        flags = getattr(params.delegate, "flags", DelegateFlags.NONE)
        self._tells_of_nodes = bool(flags & DelegateFlags.PER_OPERATOR_PROFILING)

    @abstractmethod
    def prepare_node(self, call: NodeCall) -> Eval:
        """Return the function that computes one node.

        The method is called for the nodes in execution order, at each (re)allocation.

        Input shapes are known. An implementation decides everything that depends on shapes and
        options here, and resizes outputs whose shape differs from the declared one. The returned
        function must write into the ``data`` of the outputs; returning arrays instead is an error.
        """

    def prepare(self, context: DelegateContext, node: Node) -> None:
        """Prepare every node, then reserve memory for the tensors inside the partition."""
        self._inner.reset()
        self._steps = []
        self._has_run = False
        for call in self._calls:
            try:
                step = self.prepare_node(call)
                if not callable(step):
                    raise TypeError(
                        f"prepare_node returned {type(step).__name__}, expected a function "
                        "without arguments that computes the node"
                    )
            except Exception as error:
                raise _error(call, error, _UNREAD * ("NoneType" in str(error))) from error
            self._steps.append(step)
        self._inner.place(context)

    def eval(self, context: DelegateContext, node: Node) -> None:
        """Compute all nodes of the partition in execution order."""
        self._inner.bind()
        is_profiling = self._tells_of_nodes and context.is_profiling
        for call, step in zip(self._calls, self._steps, strict=True):
            raise_if_requested(context)
            start = time.perf_counter_ns() if is_profiling else 0
            try:
                if self._has_run:
                    step()
                else:
                    from delegraph.delegation.written_outputs import run_first

                    run_first(step, call.inputs, call.outputs, f"{call.name}'s function")
            except CallCancelledError:
                raise
            except Exception as error:
                raise _error(call, error) from error
            if is_profiling:
                took = time.perf_counter_ns() - start
                context.record_event(call.name, call.index, start, took)
        self._has_run = True


class _InnerTensors:
    """Tensors used only inside one partition, for which the host allocates no memory.

    Attributes:
        tensors: mapping from a tensor's index in the graph to a copy of the host's tensor.
    """

    def __init__(
        self, context: DelegateContext, nodes: Sequence[Node], outputs: Iterable[int]
    ) -> None:
        self._declared = context.tensors
        made = {i for node in nodes for i in node.outputs if i >= 0} - set(outputs)
        kept = sorted(i for i in made if not context.tensors[i].is_variable)
        self.tensors = {i: copy(context.tensors[i]) for i in kept}
        self._first: dict[int, int] = {}  # positions of the nodes that use it
        self._last: dict[int, int] = {}
        for position, node in enumerate(nodes):
            for i in (*node.inputs, *node.outputs):
                if i in self.tensors:
                    self._first.setdefault(i, position)
                    self._last[i] = position
        self._places: list[tuple[Tensor, Allocation]] = []
        self._memory: Scratch | None = None
        self._bound: object = None

    def reset(self) -> None:
        """Give every tensor its declared shape, and remove its data."""
        for index, tensor in self.tensors.items():
            tensor.shape, tensor.data = self._declared[index].shape, None

    def place(self, context: DelegateContext) -> None:
        """Reserve memory for the tensors; those needed at the same time do not overlap."""
        arena = SimpleMemoryArena()
        in_arena = [t for t in self.tensors.values() if t.type not in OBJECT_TYPES]
        sizes = {t.index: byte_size(t.type, t.shape) for t in in_arena}
        in_arena.sort(key=lambda t: (-sizes[t.index], t.index))  # largest first, as in TFLite
        self._places = [
            (t, arena.allocate(sizes[t.index], t.index, self._first[t.index], self._last[t.index]))
            for t in in_arena
        ]
        self._memory = context.scratch((arena.high_water_mark,), np.uint8) if in_arena else None
        self._bound = None

    def bind(self) -> None:
        """Set the values (``data``) of each tensor to its part of the memory that was reserved."""
        for tensor in self.tensors.values():
            if tensor.type in OBJECT_TYPES:
                tensor.data = np.empty(tensor.shape, object)
        if self._memory is None or self._memory.data is self._bound:
            return
        self._bound = memory = self._memory.data
        for tensor, place in self._places:
            tensor.data = _view(memory, place.offset, place.size, tensor)


def _view(memory: NDArray[np.uint8], offset: int, size: int, tensor: Tensor) -> NDArray[Any]:
    part = memory[offset : offset + size]
    return part if tensor.is_packed else part.view(tensor.dtype).reshape(tensor.shape)


_UNREAD = "; while preparing, only constants have data: the function that is returned reads it"


def _error(call: NodeCall, error: Exception, advice: str = "") -> OperatorError:
    return OperatorError(f"node {call.index} ({call.name}): {in_words(error)}{advice}")
