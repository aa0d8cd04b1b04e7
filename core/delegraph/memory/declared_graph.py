"""A subgraph for the memory planner, with the shapes declared in the model file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delegraph.graph.dtypes import OBJECT_TYPES, byte_size
from delegraph.graph.model import SubgraphSpec
from delegraph.memory.arena_planner import PlanNode, TensorKind


class DeclaredGraph:
    """A subgraph for the planner, with declared shapes, before nodes are prepared.

    Unknown dimensions count as 1. A running subgraph may need other memory: delegates replace
    nodes, inputs are resized, and nodes request temporary tensors.

    Args:
        spec: the subgraph.
        inplace: mapping from operator names to the inputs that may share memory with output 0, as
            in :class:`~delegraph.memory.arena_planner.PlanNode`; missing names mean no inputs.
    """

    def __init__(self, spec: SubgraphSpec, inplace: Mapping[str, int] | None = None) -> None:
        bits = inplace or {}
        self.nodes: Sequence[PlanNode] = [
            PlanNode(op.inputs, op.outputs, (), bits.get(op.name, 0)) for op in spec.operators
        ]
        self.inputs: Sequence[int] = spec.inputs
        self.outputs: Sequence[int] = spec.outputs
        self.variables: Sequence[int] = [t.index for t in spec.tensors if t.is_variable]
        self._tensors = spec.tensors

    @property
    def num_tensors(self) -> int:
        """Number of tensors of the subgraph."""
        return len(self._tensors)

    def tensor_bytes(self, index: int) -> int:
        """Bytes of the declared shape of tensor *index*; 0 for strings, whose size is unknown."""
        tensor = self._tensors[index]
        return 0 if tensor.type in OBJECT_TYPES else byte_size(tensor.type, tensor.shape)

    def tensor_kind(self, index: int) -> TensorKind:
        """Return the owner of tensor *index*'s memory."""
        tensor = self._tensors[index]
        if tensor.data is not None or tensor.external_buffer or tensor.type in OBJECT_TYPES:
            return TensorKind.OTHER
        return TensorKind.ARENA_RW_PERSISTENT if tensor.is_variable else TensorKind.ARENA_RW
