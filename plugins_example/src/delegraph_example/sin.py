"""The ``sin`` delegate: takes SIN on float32 and computes it with NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delegraph import (
    Capabilities,
    Claim,
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
    Tensor,
    Tolerance,
)

CAPABILITIES = Capabilities(
    [Claim("SIN", "FLOAT32", "dynamic-shapes", "empty", "many-dims", "scalar")],
    tolerance={"FLOAT32": Tolerance(relative=1e-6, absolute=1e-7)},
)
"""One operator on one type, of any shape; the conformance kit tries all of that."""


class SinDelegate(SimpleDelegateInterface):
    """Says which nodes it takes; Delegraph groups them into partitions."""

    def name(self) -> str:
        return "sin"

    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        # True, or a Rejection that tells the user why not: another operator, or another type.
        return CAPABILITIES.check(registration, node, context)

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return SinKernel()

    def flags(self) -> DelegateFlags:
        # The kernel's prepare takes whatever shapes it finds, so they may change while invoking.
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS


class SinKernel(SimpleDelegateKernelInterface):
    """Computes one partition: for sin(sin(x)) that is two nodes."""

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        # Called once. The nodes come in execution order, so running them one by one is right.
        self._steps = []
        for index in params.nodes_to_replace:
            node, _ = context.get_node_and_registration(index)
            self._steps.append((node.inputs[0], node.outputs[0]))
        # A tensor that only nodes of this partition touch gets no memory from Delegraph: it is
        # no input or output of the delegate node. Those arrays are ours.
        self._inner_tensors = {target for _, target in self._steps} - set(params.output_tensors)
        self._inner: dict[int, NDArray[np.float32]] = {}

    def prepare(self, context: DelegateContext, node: Node) -> None:
        # Called after every change of shapes: pass the shapes on, and size our own arrays.
        for source, target in self._steps:
            shape = context.tensors[source].shape
            context.resize_tensor(context.tensors[target], shape)
            if target in self._inner_tensors:
                self._inner[target] = np.empty(shape, np.float32)

    def eval(self, context: DelegateContext, node: Node) -> None:
        # Called for every invoke. Tensor.data may be another array than last time: ask again.
        for source, target in self._steps:
            x = self._values(context.tensors[source])
            np.sin(x, out=self._values(context.tensors[target]))

    def _values(self, tensor: Tensor) -> NDArray[np.float32]:
        """Return where a tensor's values are: in an array of ours, or where Delegraph put them."""
        inner = self._inner.get(tensor.index)
        values: NDArray[np.float32] = tensor.data if inner is None else inner
        return values
