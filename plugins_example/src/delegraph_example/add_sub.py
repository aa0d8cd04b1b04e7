"""The ``add_sub`` delegate: takes ADD and SUB on float32, fused activations included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from delegraph import (
    Capabilities,
    Claim,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
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
from delegraph.schema.enums import ActivationFunctionType as Activation
from delegraph_example.options import AddSubOptions

SHAPES = ("broadcast", "dynamic-shapes", "empty", "many-dims", "scalar")
CAPABILITIES = Capabilities(
    [Claim(("ADD", "SUB"), "FLOAT32", "activation", *SHAPES)],
    tolerance={"FLOAT32": Tolerance()},  # the very same bits
)

COMPUTE: dict[str, Callable[..., Any]] = {"ADD": np.add, "SUB": np.subtract}
"""The NumPy function that computes each operator."""

RANGES: dict[Activation, tuple[float | None, float | None]] = {
    Activation.NONE: (None, None),
    Activation.RELU: (0.0, None),
    Activation.RELU_N1_TO_1: (-1.0, 1.0),
    Activation.RELU6: (0.0, 6.0),
}
"""Smallest and largest result of each fused activation; None means no limit."""


class AddSubDelegate(SimpleDelegateInterface):
    """Claims the nodes that it computes exactly, and gives a reason for each other node."""

    def __init__(self, options: AddSubOptions) -> None:
        self._options = options  # Delegraph made it from the user's text, checked

    def name(self) -> str:
        return "add_sub"

    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        answer = CAPABILITIES.check(registration, node, context)
        if not answer:
            return answer
        activation = node.options.fused_activation_function
        if activation not in RANGES:  # which activation is more than a claim can say
            return Rejection(
                "activation", actual=activation.name, expected=" or ".join(a.name for a in RANGES)
            )
        return True

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return AddSubKernel()

    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS  # AddSubKernel takes any shapes

    def delegate_options(self) -> DelegateOptions:
        return DelegateOptions(min_nodes_per_partition=self._options.min_nodes)


class AddSubKernel(NodeByNodeKernel):
    """Computes one partition: all its nodes, in execution order."""

    def prepare_node(self, call: NodeCall) -> Eval:
        a, b, y = call.input(0), call.input(1), call.output()
        call.resize(np.broadcast_shapes(a.shape, b.shape))
        compute = COMPUTE[call.name]
        low, high = RANGES[call.options.fused_activation_function]
        if low is None and high is None:
            return lambda: compute(a.data, b.data, out=y.data)

        def compute_and_clip() -> None:
            compute(a.data, b.data, out=y.data)
            np.clip(y.data, low, high, out=y.data)

        return compute_and_clip
