"""The ``sin`` delegate: takes SIN on float32 and computes it with NumPy."""

from __future__ import annotations

import numpy as np

from delegraph import (
    Capabilities,
    Claim,
    DelegateContext,
    DelegateFlags,
    Eval,
    Node,
    NodeByNodeKernel,
    NodeCall,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
    Tolerance,
)

CAPABILITIES = Capabilities(
    [Claim("SIN", "FLOAT32", "dynamic-shapes", "empty", "many-dims", "scalar")],
    tolerance={"FLOAT32": Tolerance(relative=1e-6, absolute=1e-7)},
)
"""One operator on one type, of any shape; the conformance kit tests this claim."""


class SinDelegate(SimpleDelegateInterface):
    """Claims the nodes that it can compute; Delegraph groups them into partitions."""

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
        # The kernel takes whatever shapes it finds, so they may change while invoking.
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS


class SinKernel(NodeByNodeKernel):
    """Computes one partition, node after node: for sin(sin(x)) that is two nodes."""

    def prepare_node(self, call: NodeCall) -> Eval:
        # Called after every change of shapes: decide here what depends on them.
        x, y = call.input(0), call.output()
        call.resize(x.shape)
        # Called for every invoke. The arrays may be others than last time, so ask for data then.
        return lambda: np.sin(x.data, out=y.data)
