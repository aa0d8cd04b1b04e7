"""A delegate that computes what it claims by Delegraph's own kernels, and then goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import (
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.delegation import Capabilities, Tolerance
from delegraph.runtime.delegates.original_nodes import OriginalNodes

Fault = Callable[[Any, Node, int], None]
"""Called with context, node and the number of the run, from 1, when the results are there."""


def nothing(context: Any, node: Node, run: int) -> None:
    """Do nothing: the fault of a sound delegate."""


class Faulty(SimpleDelegateInterface):
    """Delegate that takes operators by name, and applies a *fault* after each run.

    Attributes:
        runs: how often any of its kernels has computed.
    """

    def __init__(
        self,
        *ops: str,
        fault: Fault = nothing,
        at_start: Fault = nothing,
        before_prepare: Fault = nothing,
        at_prepare: Fault = nothing,
        dynamic: bool = False,
        tolerance: Mapping[str, Tolerance] | None = None,
        name: str = "faulty",
    ) -> None:
        self.ops = ops
        self.fault, self.at_start = fault, at_start
        self.before_prepare, self.at_prepare = before_prepare, at_prepare
        self.dynamic = dynamic
        self.tolerance = tolerance
        self.runs = self.preparations = 0
        self._name = name

    def name(self) -> str:
        return self._name

    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS if self.dynamic else DelegateFlags.NONE

    def capabilities(self) -> Capabilities:
        return Capabilities(tolerance=self.tolerance)

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        return not self.ops or registration.name in self.ops or Rejection("op")

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return FaultyKernel(self)

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Any) -> None:
        raise OSError("bus fell asleep")


class FaultyKernel(SimpleDelegateKernelInterface):
    def __init__(self, delegate: Faulty) -> None:
        self.delegate = delegate

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        pass

    def prepare(self, context: Any, node: Node) -> None:
        self.delegate.preparations += 1
        self.delegate.before_prepare(context, node, self.delegate.preparations)
        self.originals = OriginalNodes(context._subgraph, node)
        self.originals.work_out_shapes()
        for index in self.originals.outputs:
            if self.originals.is_open(index):
                context.set_dynamic(context.tensors[index])
            else:
                context.resize_tensor(context.tensors[index], self.originals.result(index).shape)
        self.delegate.at_prepare(context, node, self.delegate.preparations)

    def eval(self, context: DelegateContext, node: Node) -> None:
        self.delegate.runs += 1
        run = self.delegate.runs  # before those of other subgraphs that the nodes call
        self.delegate.at_start(context, node, run)
        self.originals.run()
        self.originals.deliver()
        self.delegate.fault(context, node, run)


def failing(every: int = 1, error: BaseException | None = None) -> Fault:
    """Return a fault that writes nonsense and raises in every *every*-th run."""

    def fault(context: Any, node: Node, run: int) -> None:
        if run % every == 0:
            for index in node.outputs:
                spoil(context.tensors[index].data)
            raise error or OSError("device lost")

    return fault


def spoil(data: NDArray[Any]) -> None:
    """Overwrite results with nonsense."""
    data[...] = b"?" if data.dtype.hasobject else 77


def first_output(change: Callable[[Any], object]) -> Fault:
    """Return a fault that changes the first output's tensor."""

    def fault(context: Any, node: Node, run: int) -> None:
        change(context.tensors[node.outputs[0]])

    return fault


def off_by(amount: float, *, from_run: int = 1) -> Fault:
    """Return a fault that adds *amount* to the last element of the first output."""

    def fault(context: Any, node: Node, run: int) -> None:
        if run >= from_run:
            y = context.tensors[node.outputs[0]].data
            y.reshape(-1)[-1:] += np.asarray(amount, y.dtype)

    return fault
