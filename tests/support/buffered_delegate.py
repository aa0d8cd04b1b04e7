"""A delegate that keeps values in buffers of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from delegraph import Delegate, DelegateContext, Node, Registration, Tensor


class Buffered(Delegate):
    """Delegate that takes SIN and keeps its results and the model's input in its own buffers."""

    def __init__(self, *, keeps_input: bool = False, fails: bool = False) -> None:
        self.buffers: dict[int, Any] = {}
        self.log: list[str] = []
        self.keeps_input, self.fails = keeps_input, fails

    def name(self) -> str:
        return "buffered"

    def prepare(self, context: DelegateContext) -> None:
        nodes = [
            i
            for i in context.get_execution_plan()
            if context.get_node_and_registration(i)[1].name == "SIN"
        ]
        if self.keeps_input:
            context.set_buffer_handle(context.tensors[context.inputs[0]], self.new_handle(), self)
        registration = Registration("buffered", self._prepare_kernel)
        context.replace_node_subsets_with_delegate_kernels(registration, nodes, self)

    def new_handle(self) -> int:
        handle = len(self.log) + 100
        self.log.append(f"new {handle}")
        self.buffers[handle] = None
        return handle

    def _prepare_kernel(self, context: Any, node: Node) -> Callable[[], None]:
        source, target = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]
        context.set_buffer_handle(target, self.new_handle(), self)

        def compute() -> None:
            x = self.buffers[source.buffer_handle] if self.keeps_input else source.data
            self.buffers[target.buffer_handle] = np.sin(x)
            target.data_is_stale = True

        return compute

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        self.log.append(f"out {tensor.buffer_handle}")
        if self.fails:
            raise OSError("bus error")
        np.copyto(tensor.data, self.buffers[tensor.buffer_handle])

    def copy_to_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        self.log.append(f"in {tensor.buffer_handle}")
        self.buffers[tensor.buffer_handle] = tensor.data.copy()

    def free_buffer_handle(self, context: DelegateContext, handle: int) -> None:
        self.log.append(f"free {handle}")
        del self.buffers[handle]

    def count(self, what: str) -> int:
        return sum(entry.split()[0] == what for entry in self.log)
