"""The ``add_sub`` delegate: takes ADD and SUB on float32, fused activations included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import (
    BuiltinOperator,
    Capabilities,
    Claim,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
    Tensor,
    Tolerance,
)
from delegraph.schema.enums import ActivationFunctionType as Activation
from delegraph_example.options import AddSubOptions

Float = NDArray[np.float32]

SHAPES = ("broadcast", "dynamic-shapes", "empty", "many-dims", "scalar")
CAPABILITIES = Capabilities(
    [Claim(("ADD", "SUB"), "FLOAT32", "activation", *SHAPES)],
    tolerance={"FLOAT32": Tolerance()},  # the very same bits
)

COMPUTE: dict[BuiltinOperator, Callable[..., Any]] = {
    BuiltinOperator.ADD: np.add,
    BuiltinOperator.SUB: np.subtract,
}
"""The NumPy function that computes each operator."""

RANGES: dict[Activation, tuple[float | None, float | None]] = {
    Activation.NONE: (None, None),
    Activation.RELU: (0.0, None),
    Activation.RELU_N1_TO_1: (-1.0, 1.0),
    Activation.RELU6: (0.0, 6.0),
}
"""Smallest and largest result that a fused activation lets through; None is no limit."""


class AddSubDelegate(SimpleDelegateInterface):
    """Takes the nodes it can compute exactly as the model asks, and says why it leaves others."""

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
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS  # AddSubKernel.prepare takes any shapes

    def delegate_options(self) -> DelegateOptions:
        return DelegateOptions(min_nodes_per_partition=self._options.min_nodes)


@dataclass(frozen=True)
class Step:
    """One node of the partition: ``target = clip(compute(a, b), low, high)``, tensors by index."""

    compute: Callable[..., Any]
    a: int
    b: int
    target: int
    low: float | None
    high: float | None


class AddSubKernel(SimpleDelegateKernelInterface):
    """Computes one partition: all its nodes, in execution order."""

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self._steps = [
            _step(*context.get_node_and_registration(index)) for index in params.nodes_to_replace
        ]
        # A tensor that only nodes of this partition touch gets no memory from Delegraph: it is
        # no input or output of the delegate node. Those arrays are ours.
        self._inner_tensors = {s.target for s in self._steps} - set(params.output_tensors)
        self._inner: dict[int, Float] = {}

    def prepare(self, context: DelegateContext, node: Node) -> None:
        for step in self._steps:
            a, b = context.tensors[step.a], context.tensors[step.b]
            shape = np.broadcast_shapes(a.shape, b.shape)
            context.resize_tensor(context.tensors[step.target], shape)
            if step.target in self._inner_tensors:
                self._inner[step.target] = np.empty(shape, np.float32)

    def eval(self, context: DelegateContext, node: Node) -> None:
        tensors = context.tensors
        for step in self._steps:
            a, b = self._values(tensors[step.a]), self._values(tensors[step.b])
            y = self._values(tensors[step.target])
            step.compute(a, b, out=y)
            if step.low is not None or step.high is not None:
                np.clip(y, step.low, step.high, out=y)

    def _values(self, tensor: Tensor) -> Float:
        """Return where a tensor's values are: in an array of ours, or where Delegraph put them."""
        inner = self._inner.get(tensor.index)
        values: Float = tensor.data if inner is None else inner
        return values


def _step(node: Node, registration: Registration) -> Step:
    """Return what to do for one node; everything that can be decided is decided here."""
    low, high = RANGES[node.options.fused_activation_function]
    (a, b), (target,) = node.inputs, node.outputs
    return Step(COMPUTE[registration.builtin_code], a, b, target, low, high)
