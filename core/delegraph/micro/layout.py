"""Makes the allocations for a model in the same order as TFLM."""

from __future__ import annotations

from delegraph.graph.model import Model, OperatorSpec
from delegraph.micro.allocator import MicroAllocator, ModelMemory
from delegraph.micro.kernel_memory import KernelMemory, kernel_memory


class Layout:
    """Reserves memory in the arena for a model, in the order in which TFLM reserves it.

    Call :meth:`start`; then :meth:`init` for each operator; then :meth:`prepare` and
    :meth:`finish_prepare` for each operator; then :meth:`finish`.

    Args:
        model: the model.
        allocator: allocator of the arena.
        reserve_scratch: whether to reserve the scratch memory of TFLM's kernels, which Delegraph's
            kernels do not use.
    """

    def __init__(
        self, model: Model, allocator: MicroAllocator, *, reserve_scratch: bool = True
    ) -> None:
        self._model = model
        self._allocator = allocator
        self._reserve_scratch = reserve_scratch

    def _kernel(self, subgraph: int, operator: OperatorSpec) -> KernelMemory:
        tensors = self._model.subgraphs[subgraph].tensors
        return kernel_memory(operator, tensors, self._allocator.target)

    def start(self) -> None:
        """Reserve memory for the structures of the model and of its operators' options."""
        self._allocator.start_model_allocation(self._model)
        for subgraph in self._model.subgraphs:
            for operator in subgraph.operators:
                size = self._kernel(subgraph.index, operator).parameters
                if size:
                    self._allocator.allocate_builtin_data(size)

    def init(self, subgraph: int, operator: OperatorSpec) -> None:
        """Reserve the data that the ``Init`` of *operator*'s kernel allocates.

        *subgraph* is the index of the operator's subgraph.
        """
        for size in self._kernel(subgraph, operator).persistent[:1]:
            self._allocator.allocate_persistent_buffer(size)

    def prepare(self, subgraph: int, operator: OperatorSpec) -> None:
        """Reserve other persistent data, scratch memory and temporary tensors of *operator*.

        *subgraph* is the index of the operator's subgraph.
        """
        allocator, tensors = self._allocator, self._model.subgraphs[subgraph].tensors
        kernel = self._kernel(subgraph, operator)
        temps = [allocator.allocate_temp_tensor(tensors[i]) for i in kernel.temp_tensors]
        for size in kernel.persistent[1:]:
            allocator.allocate_persistent_buffer(size)
        for size in kernel.scratch if self._reserve_scratch else ():
            allocator.request_scratch_buffer_in_arena(size, subgraph)
        for temp in reversed(temps):
            allocator.deallocate_temp_tensor(temp)

    def finish_prepare(self, operator: OperatorSpec) -> None:
        """Free the memory that was needed only to prepare the node of *operator*."""
        self._allocator.finish_prepare_node_allocations(operator.index)

    def finish(self) -> ModelMemory:
        """Plan the head; reserve the structures of the graph's inputs and outputs."""
        allocator = self._allocator
        memory = allocator.finish_model_allocation(self._model)
        main = self._model.subgraphs[0]
        for indices in (main.inputs, main.outputs):
            allocator.allocate_persistent_buffer(allocator.target.pointer * len(indices))
            for index in indices:
                if index >= 0:
                    allocator.allocate_persistent_tensor(main.tensors[index])
        return memory
