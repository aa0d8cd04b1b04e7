"""A model whose QUANTIZE makes a step of a last bit, and a delegate that computes its nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import DelegateContext, Node
from delegraph.schema.options import AddOptions, MulOptions
from delegraph.testing import constant, graph_model, tensor
from support.by_name import ByName, ByNameKernel

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


class Changing(ByName):
    """Delegate that computes with NumPy and then changes results."""

    def __init__(self, change: Change) -> None:
        super().__init__("ADD", "QUANTIZE", "DEQUANTIZE", "MUL", name="changing", kernel=_Kernel)
        self.change = change
        self.runs = 0


class _Kernel(ByNameKernel):
    delegate: Changing

    def eval(self, context: DelegateContext, node: Node) -> None:
        self.delegate.runs += 1
        super().eval(context, node)

    def result(self, op: str, *arguments: Any) -> Any:
        if op == "QUANTIZE":
            y = np.floor(arguments[0].astype(np.float64) / STEP + 0.5).astype(np.int8)
        elif op == "DEQUANTIZE":
            y = arguments[0] * np.float32(STEP)
        else:
            y = super().result(op, *arguments)
        return self.delegate.change(op, y, len(self.nodes))
