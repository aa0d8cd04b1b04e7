"""A delegate that computes what it claims by Delegraph's own kernels, and then goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from graph_model import graph_model, subgraphs_model
from numpy.typing import NDArray
from one_op import constant, tensor

from delegraph import (
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    Interpreter,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.delegation.capabilities import Capabilities, Tolerance
from delegraph.runtime.original_nodes import OriginalNodes
from delegraph.schema.options import (
    AddOptions,
    AssignVariableOptions,
    CastOptions,
    GreaterOptions,
    IfOptions,
    LessOptions,
    MulOptions,
    ReadVariableOptions,
    RNNOptions,
    VarHandleOptions,
    WhereOptions,
    WhileOptions,
)

Fault = Callable[[Any, Node, int], None]
"""Called with context, node and the number of the run, from 1, when the results are there."""


def nothing(context: Any, node: Node, run: int) -> None:
    """Go not wrong at all."""


class Faulty(SimpleDelegateInterface):
    """Takes operators by name, all when none is named; each run ends with a *fault*.

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
    """Return the fault that writes nonsense and raises, every so many runs."""

    def fault(context: Any, node: Node, run: int) -> None:
        if run % every == 0:
            for index in node.outputs:
                spoil(context.tensors[index].data)
            raise error or OSError("device lost")

    return fault


def spoil(data: NDArray[Any]) -> None:
    """Overwrite results."""
    data[...] = b"?" if data.dtype.hasobject else 77


def first_output(change: Callable[[Any], object]) -> Fault:
    """Return the fault that changes the first output's tensor."""

    def fault(context: Any, node: Node, run: int) -> None:
        change(context.tensors[node.outputs[0]])

    return fault


# -- models ------------------------------------------------------------------------------------


def chain() -> bytes:
    """f(x) = sin(x) + x + sin(2 x); two tensors of it stay inside any partition."""
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


def positive_positions() -> bytes:
    """Squares of the positions of positive values; how many is known only while invoking."""
    tensors = {
        "zero": constant(np.zeros(1, np.float32)),
        "c": tensor((4,), "BOOL"),
        "w": tensor((4, 1), "INT64"),
        "f": tensor((4, 1)),
        "y": tensor((4, 1)),
    }
    return graph_model(
        [
            ("GREATER", "x zero", "c", GreaterOptions()),
            ("WHERE", "c", "w", WhereOptions()),
            ("CAST", "w", "f", CastOptions()),
            ("MUL", "f f", "y", MulOptions()),
        ],
        inputs="x",
        outputs="y",
        tensors=tensors,
    )


def doubling() -> bytes:
    """While x < 10: x = x + x; then + 1."""
    one = {"x": tensor((1,)), "y": tensor((1,)), "z": tensor((1,))}
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    unit = constant(np.ones(1, np.float32))
    loop = [("WHILE", "x", "z", options), ("ADD", "z unit", "y", AddOptions())]
    less = [("LESS", "x ten", "c", LessOptions())]
    ten = constant(np.array([10], np.float32))
    return subgraphs_model(
        [
            (loop, "x", "y", {**one, "unit": unit}),
            (less, "x", "c", {**one, "ten": ten, "c": tensor((1,), "BOOL")}),
            ([("ADD", "x x", "y", AddOptions())], "x", "y", one),
        ]
    )


def remembering() -> bytes:
    """An RNN of one unit, whose state is a variable tensor: h = x + h / 2."""
    tensors = {
        "x": tensor((1, 1)),
        "w": constant(np.ones((1, 1), np.float32)),
        "r": constant(np.full((1, 1), 0.5, np.float32)),
        "b": constant(np.zeros(1, np.float32)),
        "h": tensor((1, 1), is_variable=True),
        "y": tensor((1, 1)),
    }
    return graph_model(
        [("RNN", "x w r b h", "y", RNNOptions())], inputs="x", outputs="y", tensors=tensors
    )


def counting() -> bytes:
    """Adds x to a resource variable and returns the sum: read, add, assign."""
    tensors = {"h": tensor((), "RESOURCE")}
    handle, read = VarHandleOptions(shared_name="v"), ReadVariableOptions()
    main = [
        ("VAR_HANDLE", "", "h", handle),
        ("READ_VARIABLE", "h", "old", read),
        ("ADD", "old x", "y", AddOptions()),
        ("ASSIGN_VARIABLE", "h y", "", AssignVariableOptions()),
    ]
    return graph_model(main, inputs="x", outputs="y", tensors=tensors)


def counting_in_a_branch() -> bytes:
    """The same in both branches of an IF."""
    tensors = {"h": tensor((), "RESOURCE")}
    branch = [
        ("VAR_HANDLE", "", "h", VarHandleOptions(shared_name="v")),
        ("READ_VARIABLE", "h", "old", ReadVariableOptions()),
        ("ADD", "old x", "y", AddOptions()),
        ("ASSIGN_VARIABLE", "h y", "", AssignVariableOptions()),
    ]
    either = [("IF", "c x", "y", IfOptions(then_subgraph_index=1, else_subgraph_index=1))]
    yes = constant(np.array([True]))
    return subgraphs_model([(either, "x", "y", {"c": yes}), (branch, "x", "y", tensors)])


def stepped(interpreter: Interpreter, steps: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the first output of consecutive invokes, each with an input of its own."""
    index, results = interpreter.get_input_details()[0]["index"], []
    for x in steps:
        if tuple(interpreter.get_input_details()[0]["shape"]) != x.shape:
            interpreter.resize_tensor_input(index, x.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(index, x)
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return results


def floats(count: int, *shape: int, seed: int = 0) -> list[NDArray[Any]]:
    """Return *count* arrays of *shape*, float32, around zero."""
    numbers = np.random.default_rng(seed)
    return [numbers.normal(size=shape or (4,)).astype(np.float32) for _ in range(count)]
