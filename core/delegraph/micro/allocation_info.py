"""Sizes and lifetimes of the tensors and scratch buffers in the head of the arena.

Source:
    AllocationInfoBuilder, tflite-micro/micro/micro_allocation_info.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from delegraph.errors import MalformedModelError
from delegraph.graph.calls import called_subgraphs
from delegraph.graph.dtypes import byte_size
from delegraph.graph.model import Model, OperatorSpec
from delegraph.micro.planners import ONLINE

_NEVER = -1  # a step number that means: not used yet


class ScratchRequest(NamedTuple):
    """Request of a node for a scratch buffer.

    Attributes:
        size: size of the buffer in bytes.
        subgraph: index of the node's subgraph.
        node: index of the node.
    """

    size: int
    subgraph: int
    node: int


@dataclass(slots=True)
class AllocationInfo:
    """Size and lifetime of a tensor or scratch buffer, for the planner.

    Attributes:
        size: size in bytes.
        first_use: number of the first step that writes the buffer; -1 if no step does.
        last_use: number of the last step that uses the buffer; -1 if no step does.
        offline_offset: offset of the buffer in the model file; -1 if the planner chooses it.
        needs_allocating: whether the buffer needs memory in the head.
    """

    size: int
    first_use: int = _NEVER
    last_use: int = _NEVER
    offline_offset: int = ONLINE
    needs_allocating: bool = True

    def written(self, step: int) -> None:
        """Record that *step* writes the buffer."""
        if self.first_use == _NEVER:
            self.first_use = step

    def used(self, step: int) -> None:
        """Record that *step* is the last step so far that uses the buffer."""
        self.last_use = step


def allocation_infos(
    model: Model,
    scratch: Sequence[ScratchRequest] = (),
    offline_offsets: Sequence[int] | None = None,
) -> list[AllocationInfo]:
    """Return the infos of all tensors, subgraph by subgraph, then of the scratch buffers.

    Steps are counted over a whole run of subgraph 0. Each operator is a step. So is each call of
    another subgraph, by IF, WHILE and CALL_ONCE as in TFLM, and by operators that TFLM lacks.
    Tensors that no step uses have -1 as uses.

    Args:
        model: the model.
        scratch: scratch requests of its nodes.
        offline_offsets: offsets of all tensors from the model file; None if it has none.

    Raises:
        MalformedModelError: a subgraph calls itself, or a subgraph that does not exist.
    """
    builder = _Builder(model, scratch, offline_offsets)
    builder.walk(0, 0)
    return builder.infos


class _Builder:
    def __init__(
        self, model: Model, scratch: Sequence[ScratchRequest], offline_offsets: Sequence[int] | None
    ) -> None:
        self._model = model
        self._scratch: dict[tuple[int, int], list[AllocationInfo]] = {}
        self._first: list[int] = []
        self._active: set[int] = set()
        self.infos: list[AllocationInfo] = []
        for subgraph in model.subgraphs:
            self._first.append(len(self.infos))
            for tensor in subgraph.tensors:
                info = AllocationInfo(byte_size(tensor.type, tensor.shape))
                if offline_offsets is not None:
                    info.offline_offset = offline_offsets[len(self.infos)]
                is_kept = tensor.is_variable and info.offline_offset == ONLINE
                is_constant = tensor.data is not None or bool(tensor.external_buffer)
                info.needs_allocating = not is_constant and not is_kept and info.size > 0
                self.infos.append(info)
        for request in scratch:
            info = AllocationInfo(request.size)
            self._scratch.setdefault((request.subgraph, request.node), []).append(info)
            self.infos.append(info)

    def _tensors(self, subgraph: int, indices: Sequence[int]) -> list[AllocationInfo]:
        first = self._first[subgraph]
        return [self.infos[first + i] for i in indices if i >= 0]

    def walk(self, index: int, step: int) -> int:
        """Record the steps in which the tensors of subgraph *index* are written and read.

        A step is the run of one operator; operators of called subgraphs count, too.

        Args:
            index: number of the subgraph.
            step: number of steps before its first operator.

        Returns:
            The number of its last step.
        """
        if index in self._active or not 0 <= index < len(self._model.subgraphs):
            problem = "calls itself" if index in self._active else "does not exist"
            raise MalformedModelError(f"subgraph {index} is called, and {problem}")
        self._active.add(index)
        subgraph = self._model.subgraphs[index]
        for info in self._tensors(index, subgraph.inputs):
            info.written(step)
            info.used(step)
        for operator in subgraph.operators:
            step = self._operator(index, operator, step + 1)
        for info in self._tensors(index, subgraph.outputs):
            info.written(step)
            info.used(step)
        self._active.remove(index)
        return step

    def _operator(self, subgraph: int, operator: OperatorSpec, step: int) -> int:
        outputs = self._tensors(subgraph, operator.outputs)
        scratch = self._scratch.get((subgraph, operator.index), [])
        for info in (*outputs, *scratch):
            info.written(step)
        for callee in called_subgraphs(operator.options):
            step = self.walk(callee, step + 1)
        for info in (*self._tensors(subgraph, operator.inputs), *outputs, *scratch):
            info.used(step)
        return step
