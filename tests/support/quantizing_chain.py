"""A model whose QUANTIZE makes a step of a last bit, and a delegate that computes its nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import (
    DelegateContext,
    DelegateParams,
    Node,
    Registration,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.schema.options import AddOptions, MulOptions
from delegraph.testing import constant, graph_model, tensor

STEP = 0.25

MODEL = graph_model(
    [
        ("ADD", "x x", "sum", AddOptions()),
        ("QUANTIZE", "sum", "q"),
        ("DEQUANTIZE", "q", "d"),
        ("MUL", "d large", "y", MulOptions()),
    ],
    inputs="x",
    outputs="y",
    tensors={
        "x": tensor((4,)),
        "sum": tensor((4,)),
        "q": tensor((4,), "INT8", scale=STEP),
        "d": tensor((4,)),
        "large": constant(np.float32([1000])),
        "y": tensor((4,)),
    },
)
X = np.full(4, np.float32(STEP / 4))
"""Twice this lies between two steps: it rounds up, and the float before it rounds down."""

Change = Callable[[str, NDArray[Any], int], NDArray[Any]]
"""Returns other results of a node, from its operator, its results and how many nodes there are."""


def last_bit(op: str, y: NDArray[Any], nodes: int) -> NDArray[Any]:
    return np.nextafter(y, np.float32(-np.inf)) if op == "ADD" else y


class Changing(SimpleDelegateInterface):
    """Delegate that computes with NumPy and then changes results."""

    def __init__(self, change: Change) -> None:
        self.change = change
        self.runs = 0

    def name(self) -> str:
        return "changing"

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool:
        return True

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return _Kernel(self)


class _Kernel(SimpleDelegateKernelInterface):
    def __init__(self, delegate: Changing) -> None:
        self.delegate = delegate

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self.nodes = [context.get_node_and_registration(i) for i in params.nodes_to_replace]
        self.outputs = params.output_tensors

    def prepare(self, context: DelegateContext, node: Node) -> None:
        pass

    def eval(self, context: DelegateContext, node: Node) -> None:
        self.delegate.runs += 1
        values = {i: context.tensors[i].data for i in node.inputs}
        for inner, registration in self.nodes:
            arguments = [values[i] for i in inner.inputs]
            y = self._result(registration.name, *arguments)
            values[inner.outputs[0]] = self.delegate.change(registration.name, y, len(self.nodes))
        for index in self.outputs:
            np.copyto(context.tensors[index].data, values[index])

    def _result(self, op: str, *arguments: Any) -> Any:
        if op == "QUANTIZE":
            ratio = arguments[0].astype(np.float64) / STEP
            return np.floor(ratio + 0.5).astype(np.int8)
        if op == "DEQUANTIZE":
            return arguments[0] * np.float32(STEP)
        return (np.add if op == "ADD" else np.multiply)(*arguments)
