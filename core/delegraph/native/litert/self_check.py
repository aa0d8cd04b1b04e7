"""Checks that an official runtime has the C structs of :mod:`delegraph.native.abi`.

``guard.py`` calls ``main(["ai_edge_litert"])`` in a child process; the result is 0 if the structs
match. The check has two phases. First a delegate that claims nothing compares each field that
Delegraph reads with its value for a small model. Then other delegates claim nodes, run, resize, use
buffers and fail. Fields that Delegraph neither reads nor calls are not checked. A wrong layout may
also crash the process, which then counts as a mismatch.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.delegate import Delegate, DelegateContext, DelegateFlags
from delegraph.errors import UnsupportedRuntimeError
from delegraph.graph.loader import parse_model
from delegraph.native import abi
from delegraph.native.litert.context import LiteRtContext
from delegraph.native.litert.delegate import LiteRtDelegate
from delegraph.native.litert.installed_runtimes import interpreter_module
from delegraph.native.tensor_types import C_TYPES
from delegraph.operators.registration import Eval, Node, OpContext, Registration
from delegraph.operators.tensor import Tensor
from delegraph.schema import tables
from delegraph.schema.enums import ActivationFunctionType, BuiltinOperator, TensorType
from delegraph.schema.options import OPTIONS_OF_OPERATOR
from delegraph.schema.writer import write_model

SHAPE = (2, 3)
CONSTANT = np.array([[0.5, 1.5, -2.5]], np.float32)
THREADS = 2
PLAN = (
    (BuiltinOperator.ADD, (0, 1), (2,)),
    (BuiltinOperator.MUL, (2, 1), (3,)),
    (BuiltinOperator.LOGISTIC, (3,), (4,)),
    (BuiltinOperator.ADD, (4, 1), (5,)),
)
"""Operators of the model: code, inputs, outputs. Tensor 0 is the input, 1 a constant."""


def main(arguments: list[str]) -> int:
    """Check the official runtime whose package *arguments* name; return 0, or raise an error."""
    check_runtime(interpreter_module(arguments[0] if arguments else None))
    return 0


def check_runtime(module: Any) -> None:
    """Check that the structs of an interpreter module are as expected.

    Raises:
        UnsupportedRuntimeError: a field differs; the message names the first one.
    """
    run = _InterpreterRuns(module)
    check_fields(run)
    check_running(run)
    _check_flags(run)
    check_order(run)
    _check_buffers(run)
    check_errors(run)


def check_model() -> bytes:
    """Return the model: ``logistic((x + c) * c) + c``, of any number of rows.

    There is a second subgraph that is never called, because a delegate requests other subgraphs to
    find its own.
    """
    codes = tuple(dict.fromkeys(code for code, _, _ in PLAN))
    tensors = [
        tables.Tensor(
            shape=CONSTANT.shape if i == 1 else SHAPE,
            shape_signature=(-1, SHAPE[1]) if i != 1 else None,
            type=TensorType.FLOAT32,
            buffer=int(i == 1),
            name=f"check_{i}",
        )
        for i in range(6)
    ]
    none = ActivationFunctionType.NONE
    operators = [
        tables.Operator(
            opcode_index=codes.index(code),
            inputs=inputs,
            outputs=outputs,
            builtin_options=None
            if code is BuiltinOperator.LOGISTIC
            else OPTIONS_OF_OPERATOR[code](fused_activation_function=none),
        )
        for code, inputs, outputs in PLAN
    ]
    subgraph = tables.SubGraph(
        tensors=tuple(tensors), inputs=(0,), outputs=(5,), operators=tuple(operators), name="main"
    )
    unused = tables.SubGraph(
        tensors=tuple(tensors[:3]),
        inputs=(0,),
        outputs=(2,),
        operators=tuple(operators[:1]),
        name="unused",
    )
    return write_model(
        tables.Model(
            version=3,
            operator_codes=tuple(tables.operator_code(code) for code in codes),
            subgraphs=(subgraph, unused),
            buffers=(tables.Buffer(), tables.Buffer(data=CONSTANT.reshape(-1).view(np.uint8))),
        )
    )


def expect(what: str, found: object, expected: object) -> None:
    """Raise an error, which names *what*, unless the runtime's value *found* equals *expected*."""
    if found != expected:
        raise UnsupportedRuntimeError(f"{what} is {found!r}, expected {expected!r}")


class Unguarded(LiteRtDelegate):
    """A Delegraph delegate that can be passed to any runtime, since it skips the guard's check."""

    def _get_native_delegate_pointer(self) -> int:
        return self.address


class Checking(Delegate):
    """A delegate for tests, whose ``prepare`` calls a function given to the constructor."""

    def __init__(self, name: str, prepare: Callable[[Checking, Any], None], flags: int) -> None:
        self._name = name
        self._prepare = prepare
        self._flags = DelegateFlags(flags)
        self.applied = 0
        self.subgraphs: list[int] = []
        self.copied: list[tuple[int, int]] = []

    @property
    def flags(self) -> DelegateFlags:
        """Flags of the delegate, from the constructor."""
        return self._flags

    def name(self) -> str:
        """Return the name of the delegate, from the constructor."""
        return self._name

    def prepare(self, context: DelegateContext) -> None:
        """Call the constructor's function, for the first subgraph."""
        self.subgraphs.append(context.subgraph_index)
        if context.subgraph_index == 0:
            self.applied += 1
            self._prepare(self, context)

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        """Fill the tensor with the value 7."""
        self.copied.append((tensor.index, tensor.buffer_handle))
        tensor.data[...] = 7


class Runs(ABC):
    """Creates objects of an official API for the model of the check, and runs them.

    Attributes:
        content: the model.
        model: the loaded model.
        is_interpreter: whether the API is the interpreter, which passes the number of threads to
            delegates, supports unknown output shapes, and repeats a delegate's error text.
    """

    is_interpreter = False

    def __init__(self) -> None:
        self.content = check_model()
        self.model = parse_model(self.content)

    def made(self, *delegates: Delegate) -> Any:
        """Return an interpreter or compiled model with the Python *delegates* only."""
        own = [Unguarded(delegate, self.model) for delegate in delegates]
        try:
            return self.official(own)
        except RuntimeError:
            for delegate in own:
                if delegate.last_exception is not None:
                    raise delegate.last_exception from None
            raise

    @abstractmethod
    def official(self, delegates: Sequence[LiteRtDelegate]) -> Any:
        """Return an interpreter or compiled model to which *delegates* are applied."""

    @abstractmethod
    def output(self, made: Any, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Resize the input of *made* to the shape of *x*, run it, and return its output."""

    def outputs(self, made: Any) -> list[NDArray[np.float32]]:
        """Return the outputs of the model *made* for its first shape and two other shapes."""
        shapes = [(rows, SHAPE[1]) for rows in (SHAPE[0], 5, 1)]
        return [self.output(made, np.resize(CONSTANT / 8, shape)) for shape in shapes]


class _InterpreterRuns(Runs):
    """Creates the check's models in the ``Interpreter`` of an official *module*, and runs them."""

    is_interpreter = True

    def __init__(self, module: Any) -> None:
        super().__init__()
        self._module = module

    def official(self, delegates: Sequence[LiteRtDelegate]) -> Any:
        resolver = self._module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        return self._module.Interpreter(
            model_content=self.content,
            experimental_delegates=delegates,
            num_threads=THREADS,
            experimental_op_resolver_type=resolver,
        )

    def output(self, made: Any, x: NDArray[np.float32]) -> NDArray[np.float32]:
        made.resize_tensor_input(0, x.shape)
        made.allocate_tensors()
        made.set_tensor(0, x)
        made.invoke()
        return np.asarray(made.get_tensor(5), np.float32)


# -- first phase -------------------------------------------------------------------------------


def check_fields(run: Runs) -> None:
    """Check each field that Delegraph reads, while a delegate is applied that claims nothing."""

    def look(_: Checking, context: LiteRtContext) -> None:
        expect("number of tensors", len(context.native_tensors), 6)
        for index in range(6):
            _check_tensor(context, index)
        expect("execution plan", context.get_execution_plan(), (0, 1, 2, 3))
        for index, (code, inputs, outputs) in enumerate(PLAN):
            node, kind = context.get_node_and_registration(index)
            found = (kind.builtin_code, node.inputs, node.outputs)
            expect(f"node {index}", found, (code, inputs, outputs))
        _check_sizes(context)
        if run.is_interpreter:
            expect("recommended_num_threads", context.recommended_num_threads, THREADS)
        previewed = [
            (params.nodes_to_replace, params.input_tensors, params.output_tensors)
            for params in context.preview_delegate_partitioning([0, 3])
        ]
        expect("partitions", previewed, [((0,), (0, 1), (2,)), ((3,), (1, 4), (5,))])

    delegate = Checking("look", look, 0)
    run.made(delegate)
    expect("subgraphs", delegate.subgraphs, [0, 1])


def _check_tensor(context: LiteRtContext, index: int) -> None:
    native, what = context.native_tensors.native(index), f"tensor {index}"
    expect(f"{what}: type", native.type, C_TYPES[TensorType.FLOAT32])
    expect(f"{what}: dims", abi.ints_at(native.dims), CONSTANT.shape if index == 1 else SHAPE)
    expect(f"{what}: bytes", native.bytes, 12 if index == 1 else 24)
    expect(f"{what}: allocation_type", native.allocation_type, 1 if index == 1 else 2)
    expect(f"{what}: delegate", native.delegate, None)
    expect(f"{what}: buffer_handle", native.buffer_handle, abi.NULL_BUFFER_HANDLE)
    expect(f"{what}: data_is_stale", native.data_is_stale, False)
    if index == 1:
        expect(f"{what}: data", context.tensors[1].data.tolist(), CONSTANT.tolist())


def _check_sizes(context: LiteRtContext) -> None:
    addresses = []
    for index in range(len(PLAN)):
        node, kind = context._native.node(index)
        addresses.append((ctypes.addressof(node), ctypes.addressof(kind)))
    node_size = {kind - node for node, kind in addresses}
    expect("size of TfLiteNode", node_size, {ctypes.sizeof(abi.TfLiteNode)})
    steps = {b[0] - a[1] for a, b in pairwise(addresses)}
    expect("size of TfLiteRegistration", steps, {ctypes.sizeof(abi.TfLiteRegistration)})


# -- second phase ------------------------------------------------------------------------------


def _claim(nodes: list[int], registration: Registration) -> Callable[[Checking, Any], None]:
    def prepare(delegate: Checking, context: LiteRtContext) -> None:
        context.replace_node_subsets_with_delegate_kernels(registration, nodes, delegate)

    return prepare


def _add(name: str, *, open_shape: bool = False) -> Registration:
    """Return a kernel that adds two inputs; with *open_shape*, without a shape before it runs."""

    def prepare(context: OpContext, node: Node) -> Eval:
        replaced: Any = context
        inner, _ = replaced.get_node_and_registration(node.options.nodes_to_replace[0])
        x, y = context.tensors[inner.inputs[0]], context.tensors[inner.inputs[1]]
        target = context.tensors[inner.outputs[0]]
        if open_shape:
            context.set_dynamic(target)
        else:
            context.resize_tensor(target, x.shape)

        def add() -> None:
            if open_shape:
                context.resize_tensor(target, x.shape)
            np.add(x.data, y.data, out=target.data)

        return add

    return Registration(name, prepare)


def check_running(run: Runs) -> None:
    """Check the results of a delegate, for several shapes and with unknown shapes."""
    expected = run.outputs(run.made())
    cases = ((0, False), (1, False), (1, True))
    for flags, open_shape in cases if run.is_interpreter else cases[:2]:
        registration = _add("add", open_shape=open_shape)
        interpreter = run.made(Checking("add", _claim([0, 3], registration), flags))
        for found, wanted in zip(run.outputs(interpreter), expected, strict=True):
            is_close = found.shape == wanted.shape and bool(np.allclose(found, wanted, 1e-5, 1e-6))
            expect(f"result with flags {flags} is right", is_close, True)


def _check_flags(run: Runs) -> None:
    for flags, is_once in ((0, False), (1, True)):
        delegate = Checking("add", _claim([0], _add("add")), flags)
        interpreter = run.made(delegate)
        for rows in (4, 3):
            interpreter.resize_tensor_input(0, (rows, SHAPE[1]))
            interpreter.allocate_tensors()
        expect(f"applied once with flags {flags}", delegate.applied == 1, is_once)


def check_order(run: Runs) -> None:
    """Check that a second delegate gets the delegate node of the first in its plan."""
    first = Checking("first", _claim([0], _add("check_kernel")), 1)
    seen: list[int] = []

    def look(_: Checking, context: LiteRtContext) -> None:
        node, kind = context.get_node_and_registration(4)
        expect("plan with a delegate", context.get_execution_plan(), (4, 1, 2, 3))
        expect("kernel's name", kind.name, "check_kernel")
        expect("kernel's code", kind.builtin_code, BuiltinOperator.DELEGATE)
        expect("node's delegate", node.delegate, first)
        expect("node's partition", node.options.nodes_to_replace, (0,))
        expect("tensor's delegate", context.native_tensors.native(2).delegate is None, False)
        expect("first added tensor", context.add_tensors(2), 6)
        expect("number of tensors", len(context.native_tensors), 8)
        seen.append(1)

    run.made(first, Checking("second", look, 1))
    expect("second delegate applied", seen, [1])


def _check_buffers(run: Runs) -> None:
    """Check that a tensor in a delegate's buffer is copied when another kernel reads it."""

    def prepare(context: OpContext, node: Node) -> Eval:
        (index,) = node.outputs
        target, seen = context.tensors[index], context
        assert isinstance(seen, LiteRtContext)
        seen.set_buffer_handle(target, 5, delegate)

        def leave() -> None:
            target.data_is_stale = True

        return leave

    delegate = Checking("buffers", _claim([0], Registration("buffers", prepare)), 1)
    interpreter = run.made(delegate)
    found = run.outputs(interpreter)[0]
    wanted = 1 / (1 + np.exp(-7 * CONSTANT)) + CONSTANT
    expect("buffers copied", set(delegate.copied), {(2, 5)})
    expect("result of a copied buffer", bool(np.allclose(found, wanted, 1e-5)), True)


def check_errors(run: Runs) -> None:
    """Check that an error text from a kernel is in the runtime's message."""

    def prepare(context: OpContext, node: Node) -> Eval:
        def fail() -> None:
            raise ValueError("text of the check: 100%s")

        return fail

    delegate = Checking("fails", _claim([0], Registration("fails", prepare)), 1)
    interpreter = run.made(delegate)
    try:
        run.outputs(interpreter)
    except RuntimeError as error:
        if run.is_interpreter:
            expect("text in the message", "text of the check: 100%s" in str(error), True)
    else:
        expect("the failure", "none", "an error")
