"""Memory of one subgraph: arrays at the planner's offsets, as ``tensor.data``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES, byte_size
from delegraph.graph.model import column_of
from delegraph.graph.tensor_loader import MAX_RANK
from delegraph.lazy_dataclass import dataclass, field
from delegraph.memory.arena_planner import ArenaPlanner, PlannerGraph, PlanNode, TensorKind
from delegraph.memory.workspace import Workspace
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.graph.model import SubgraphSpec, TensorSpec
    from delegraph.operators.memory_limit import MemoryLimit
    from delegraph.operators.registration import Node, Registration

_CHANNEL_BYTES = 64
"""Bytes of the data for one channel of quantized weights: multiplier, shift and sum."""

_KINDS = {
    AllocationType.ARENA_RW: TensorKind.ARENA_RW,
    AllocationType.ARENA_RW_PERSISTENT: TensorKind.ARENA_RW_PERSISTENT,
}

_OTHER = TensorKind.OTHER

_COUNTABLE = 2**59
"""Smallest number of elements that no array can have, even if another dimension is zero."""


@dataclass(slots=True)
class _PlannedGraph:
    """The subgraph as the planner sees it: execution plan, and each tensor's size and kind."""

    tensors: Sequence[Tensor]
    nodes: Sequence[PlanNode]
    inputs: Sequence[int]
    outputs: Sequence[int]
    variables: Sequence[int]
    _bytes: dict[tuple[TensorType, tuple[int, ...]], int] = field(default_factory=dict)

    @property
    def num_tensors(self) -> int:
        return len(self.tensors)

    def tensor_bytes(self, index: int) -> int:
        tensor = self.tensors[index]
        sort = tensor.type, tensor.shape
        if (found := self._bytes.get(sort)) is None:  # many tensors have one of few kinds
            found = self._bytes[sort] = tensor.bytes
        return found

    def tensor_kind(self, index: int) -> TensorKind:
        return _KINDS.get(self.tensors[index].allocation_type, _OTHER)


class SubgraphMemory:
    """Arenas and workspace of one subgraph.

    Attributes:
        workspace: scratch memory of the nodes.
        limit: bytes that arenas and workspace may take together.
        graph: the graph, with delegate nodes, for which memory is planned; None before
            :meth:`plan`.
    """

    def __init__(self, *, preserve_all_tensors: bool, limit: MemoryLimit) -> None:
        self.workspace = Workspace()
        self.limit = limit
        self.graph: PlannerGraph | None = None
        self._preserve_all_tensors = preserve_all_tensors
        self._planner: ArenaPlanner | None = None
        self._tensors: Sequence[Tensor] = ()
        self._plan: list[PlanNode] = []
        self._inputs: Sequence[int] = ()

    @property
    def arena_bytes(self) -> tuple[int, int]:
        """Bytes of the arena and of the persistent arena; zeros before the first allocation."""
        return (0, 0) if self._planner is None else self._planner.arena_bytes

    def plan(
        self,
        tensors: Sequence[Tensor],
        nodes: Iterable[tuple[Node, Registration]],
        inputs: Sequence[int],
        outputs: Sequence[int],
        variables: Sequence[int],
        held: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Compute tensor lifetimes for an execution plan; :meth:`allocate` allocates the memory.

        *held* maps a plan position to tensors that earlier nodes may still read while the node
        there runs.
        """
        self._plan = [
            PlanNode(node.inputs, node.outputs, (), registration.inplace)
            for node, registration in nodes
        ]
        for position, indices in (held or {}).items():
            self._plan[position].held = indices
        self._tensors = tensors
        self._inputs = inputs
        self.graph = _PlannedGraph(tensors, self._plan, inputs, outputs, variables)
        self._planner = ArenaPlanner(
            self.graph, preserve_all_tensors=self._preserve_all_tensors, tighten=True
        )
        self._planner.plan_allocations()

    def allocate(self, first: int, last: int) -> None:
        """Allocate memory for the tensors of the plan's nodes *first* to *last*.

        Raises:
            OperatorError: the model needs more memory than the limit or the machine allows.
        """
        assert self._planner is not None, "plan() comes first"
        try:
            changed = self._planner.execute_allocations(first, last, limit=self.limit.bytes)
            self._check(sum(self._planner.arena_bytes) + self.workspace.needed)
            self.workspace.commit()
        except MemoryError as error:
            raise OperatorError(
                f"the model's tensors do not fit: {error}; this is {self.limit.advice()}"
            ) from error
        # A tensor may keep its place for another shape. A tensor of 0 bytes never has a place.
        indices = {*changed, *(self._inputs if first == 0 else ())}
        indices.update(*(node.outputs for node in self._plan[first : last + 1]))
        indices.discard(-1)
        self._bind(indices, self._planner)

    def reset_after(self, position: int) -> None:
        """Free the memory of tensors that are first used after a plan position."""
        assert self._planner is not None, "plan() comes first"
        self._planner.reset_allocations_after(position)

    def release(self) -> None:
        """Free all memory; :meth:`plan` must be called before the next allocation."""
        self._planner = self.graph = None
        self._tensors, self._plan, self._inputs = (), [], ()
        self.workspace.release()

    def resize_running(self, tensor: Tensor, dims: tuple[int, ...]) -> None:
        """Set a dynamic tensor's shape to *dims* while nodes run, with new memory if it changes.

        Raises:
            OperatorError: the tensor is not dynamic and would change, or the limit is exceeded.
        """
        if not tensor.is_dynamic:
            if dims != tensor.shape:
                raise OperatorError(f"{tensor!r} cannot become {list(dims)} while invoking")
        elif tensor.data is None or tensor.shape != dims:
            tensor.data = None  # first, in case of an interrupt
            tensor.shape = dims
            self.allocate_dynamic(tensor)

    def allocate_dynamic(self, tensor: Tensor) -> None:
        """Allocate separate, uninitialised memory for a dynamic tensor's present shape."""
        self._check(tensor.bytes)
        if tensor.is_packed:
            tensor.data = np.empty(tensor.bytes, np.uint8)
        else:
            tensor.data = np.empty(tensor.shape, tensor.dtype)

    def _check(self, wanted: int) -> None:
        if wanted > self.limit.bytes:
            raise OperatorError(f"{wanted} bytes of tensors exceed {self.limit.advice()}")

    def _bind(self, indices: Iterable[int], planner: ArenaPlanner) -> None:
        """Set the arrays of the tensors *indices* to the memory that *planner* gave them.

        Tensors of equal memory, type and shape share one array object.

        For different array objects, NumPy checks slowly whether they overlap; this matters when a
        node works in place.
        """
        tensors, root_of, places = self._tensors, planner.roots.get, planner.allocations
        views: dict[tuple[int, TensorType, tuple[int, ...]], NDArray[Any]] = {}
        for index in indices:
            tensor = tensors[index]
            root = root_of(index, index)
            if root != index and tensors[root].allocation_type != tensor.allocation_type:
                root = index
            key = root, tensor.type, tensor.shape
            if (found := views.get(key)) is not None:
                tensor.data = found
            elif root in places and (address := planner.address(index)) is not None:
                buffer, offset, size = address
                tensor.data = views[key] = view(buffer[offset : offset + size], tensor)
            elif 0 in tensor.shape and tensor.allocation_type in _KINDS:
                tensor.data = view(np.empty(0, np.uint8), tensor)


def require_channel_copies(subgraph: SubgraphSpec, limit: MemoryLimit) -> None:
    """Check that per-channel data of nodes that share constants fits the memory *limit*.

    Raises:
        OperatorError: multipliers, shifts and sums of all nodes' channels exceed the limit.
    """
    quantizations = enumerate(column_of(subgraph.tensors, "quantization"))
    quantized = (subgraph.tensors[i] for i, given in quantizations if given is not None)
    channels = {tensor.index: _channels(tensor) for tensor in quantized}
    known, shared = set(), 0
    operators = subgraph.operators if channels else ()
    for index in chain.from_iterable(operator.inputs[1:] for operator in operators):
        if (count := channels.get(index, 1)) > 1:
            buffer = subgraph.tensors[index].buffer or ~index
            shared += count if buffer in known else 0
            known.add(buffer)
    if shared:
        what = f"subgraph {subgraph.index}: what its nodes scale with"
        limit.require_copies(shared * _CHANNEL_BYTES, what)


def _channels(tensor: TensorSpec) -> int:
    """Number of channels of a tensor for which kernels store per-channel data."""
    if tensor.quantization is None:
        return 0
    outputs = tensor.shape[:1] if tensor.data is not None else ()
    return max(len(tensor.quantization.scales), *outputs, 0)


def view(raw: NDArray[np.uint8], tensor: Tensor) -> NDArray[Any]:
    """Return *raw* bytes as an array of the tensor's dtype and shape; packed types stay bytes."""
    if tensor.is_packed:
        return raw
    return raw.view(tensor.dtype).reshape(tensor.shape)


def checked_shape(tensor: Tensor, shape: Sequence[int], limit: MemoryLimit) -> tuple[int, ...]:
    """Return *shape* as a tuple after checking rank, sizes and memory limit.

    Raises:
        OperatorError: a dimension is negative or does not fit an int32, or the tensor has more
            bytes than *limit*.
    """
    from delegraph.operators.checks import require_dimensions  # lazy: few shapes change

    dims = tuple(map(int, shape))
    if len(dims) > MAX_RANK:
        raise OperatorError(f"{tensor!r} cannot have {len(dims)} dimensions, {MAX_RANK} are most")
    require_dimensions(tensor, dims)
    if 0 in dims and math.prod(d or 1 for d in dims) >= _COUNTABLE:
        raise OperatorError(f"{tensor!r} cannot have shape {list(dims)}: no array can")
    is_object = tensor.type in OBJECT_TYPES  # arrays of pointers
    size = math.prod(dims) * 8 if is_object else byte_size(tensor.type, dims)
    if size > limit.bytes:  # otherwise no text is needed
        limit.require(size, f"{tensor!r} with shape {list(dims)}")
    return dims
