"""A delegate that takes operators by name, and a model for it: f(x) = sin(x) + x + sin(2 x)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from delegraph import (
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
    Interpreter,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.schema.options import AddOptions, LessOptions, MulOptions, WhileOptions
from delegraph.testing import constant, graph_model, subgraphs_model, tensor
from support.running import result_of

COMPUTE: dict[str, Callable[..., Any]] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "SIN": np.sin,
    "Twice": lambda x: 2 * x,
}


class ByName(SimpleDelegateInterface):
    """Delegate that takes operators by name and computes them with NumPy.

    Attributes:
        calls: what the host has called, in order.
        params: the partitions it got.
    """

    def __init__(
        self,
        *ops: str,
        flags: DelegateFlags = DelegateFlags.NONE,
        options: DelegateOptions | None = None,
        name: str = "by_name",
        kernel: Callable[[Any], SimpleDelegateKernelInterface] | None = None,
    ) -> None:
        self.ops: Collection[str] = ops
        self.calls: list[str] = []
        self.params: list[DelegateParams] = []
        self._flags, self._name, self._kernel = flags, name, kernel or ByNameKernel
        self._options = options or DelegateOptions()

    def name(self) -> str:
        return self._name

    def flags(self) -> DelegateFlags:
        return self._flags

    def delegate_options(self) -> DelegateOptions:
        return self._options

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        if registration.name in self.ops:
            return True
        return Rejection("op", actual=registration.name, expected=" or ".join(self.ops))

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return self._kernel(self)


class ByNameKernel(SimpleDelegateKernelInterface):
    def __init__(self, delegate: ByName) -> None:
        self.delegate = delegate

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self.delegate.calls.append("init")
        self.delegate.params.append(params)
        self.params = params
        self.nodes = [context.get_node_and_registration(i) for i in params.nodes_to_replace]

    def prepare(self, context: DelegateContext, node: Node) -> None:
        self.delegate.calls.append("prepare")
        shapes = {i: context.tensors[i].shape for i in self.params.input_tensors}
        for inner, _ in self.nodes:
            shapes[inner.outputs[0]] = np.broadcast_shapes(*(shapes[i] for i in inner.inputs))
        for index in self.params.output_tensors:
            context.resize_tensor(context.tensors[index], shapes[index])

    def eval(self, context: DelegateContext, node: Node) -> None:
        self.delegate.calls.append("eval")
        values = {i: context.tensors[i].data for i in self.params.input_tensors}
        for inner, registration in self.nodes:
            arguments = [values[i] for i in inner.inputs]
            values[inner.outputs[0]] = self.result(registration.name, *arguments)
        for index in self.params.output_tensors:
            np.copyto(context.tensors[index].data, values[index])

    def result(self, op: str, *arguments: Any) -> Any:
        return COMPUTE[op](*arguments)


def sines() -> bytes:
    """Return a model of f(x) = sin(x) + x + sin(2 x)."""
    return graph_model(
        [
            ("SIN", "x", "a"),
            ("ADD", "a x", "b", AddOptions()),
            ("MUL", "x two", "c", MulOptions()),
            ("SIN", "c", "d"),
            ("ADD", "b d", "y", AddOptions()),
        ],
        inputs="x",
        outputs="y",
        tensors={"two": constant(np.full(1, 2, np.float32))},
    )


def doubling_while() -> bytes:
    """Return a model of the loop ``while x < 10: x = x + x``."""
    less = [("LESS", "x ten", "c", LessOptions())]
    add = [("ADD", "x x", "y", AddOptions())]
    loop = [("WHILE", "x", "y", WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))]
    one = {"x": tensor((1,)), "y": tensor((1,))}
    ten = constant(np.array([10], np.float32))
    return subgraphs_model(
        [
            (loop, "x", "y", one),
            (less, "x", "c", {**one, "ten": ten, "c": tensor((1,), "BOOL")}),
            (add, "x", "y", one),
        ]
    )


X = np.array([2.0, 0.5, -1.0, 0.0], np.float32)
Y = np.sin(X) + X + np.sin(2 * X)


def run(interpreter: Any, x: np.ndarray[Any, Any] = X) -> Any:
    interpreter.allocate_tensors()
    return result_of(interpreter, x)


def partitions(interpreter: Interpreter) -> list[tuple[str, tuple[int, ...]]]:
    return [(p.delegate, p.nodes) for p in interpreter.placement.partitions]
