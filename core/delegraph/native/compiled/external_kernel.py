"""Nodes that call compiled kernel functions: a delegate's nodes, and custom operators."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import addressof
from typing import Any

from delegraph.errors import DelegateError, OperatorError
from delegraph.native.abi import REGISTRATION_FUNCTIONS, TfLiteRegistration, callback
from delegraph.native.compiled.context import NativeContext
from delegraph.native.compiled.nodes import NativeNode
from delegraph.native.compiled.tensors import TensorStruct
from delegraph.operators.registration import Eval, Node, Registration
from delegraph.schema.enums import BuiltinOperator

_READ = ("init", "free", "prepare", "invoke")
"""Functions of ``TfLiteRegistration`` that all versions have for which delegates are compiled."""


class KernelFunctions:
    """The functions of a ``TfLiteRegistration``; None for null pointers.

    Attributes:
        name: name of the custom operator or delegate; may be empty.
    """

    def __init__(self, registration: TfLiteRegistration) -> None:
        self.name = (registration.custom_name or b"").decode(errors="replace")
        self.init, self.free, self.prepare, self.invoke = (
            _function(name, getattr(registration, name)) for name in _READ
        )


def _function(name: str, address: int | None) -> Callable[..., Any] | None:
    return None if not address else callback(REGISTRATION_FUNCTIONS[name])(address)


def kernel_registration(
    native_of: Callable[[Any], NativeContext],
    functions: KernelFunctions,
    name: str,
    code: BuiltinOperator = BuiltinOperator.DELEGATE,
) -> Registration:
    """Return a registration (implementation of an operator) that calls compiled C functions.

    Args:
        native_of: function that returns the native context for a subgraph's context.
        functions: C functions of the kernel.
        name: name of the kernel if the functions have none.
        code: ``DELEGATE``, or ``CUSTOM`` for an operator of the model.
    """

    def prepare(context: Any, node: Node) -> Eval:
        kernel: ExternalKernel = node.user_data
        return kernel.prepare(context)

    def free(kernel: ExternalKernel | None) -> None:
        if kernel is not None:
            kernel.free()

    return Registration(
        functions.name or name,
        prepare,
        code,
        init=lambda context, node: ExternalKernel(
            native_of(context), functions, context, node, code
        ),
        free=free,
    )


class ExternalKernel:
    """A node whose kernel is a set of compiled C functions.

    Raises:
        DelegateError: the registration has no ``invoke``.
    """

    def __init__(
        self,
        native: NativeContext,
        functions: KernelFunctions,
        context: Any,
        node: Node,
        code: BuiltinOperator = BuiltinOperator.DELEGATE,
    ) -> None:
        if functions.invoke is None:
            raise DelegateError(
                "its registration has no invoke; kernels of the opaque API (TfLiteOperator) are "
                "not supported"
            )
        self._native = native
        self._functions = functions
        self._invoke = functions.invoke
        self._free = functions.free
        registration = Registration(functions.name, _unused, code)
        self._structs = NativeNode(node, registration, native.delegate.address)
        native.add_node(self._structs)
        self._struct = self._structs.struct
        self._address = addressof(self._struct)
        self._said: tuple[str, ...] = ()  # messages of init, which prepare raises
        if functions.init is not None:
            with native.called(context):
                said = len(native.messages)
                self._struct.user_data = functions.init(native.address, *self._init_data(code))
                self._said = tuple(native.messages[said:])
        native.delegate.retain()

    def _init_data(self, code: BuiltinOperator) -> tuple[Any, int]:
        """Arguments of ``init``: custom options and their length, or a partition's struct and 0."""
        if code == BuiltinOperator.CUSTOM:
            return self._struct.custom_initial_data, self._struct.custom_initial_data_size
        return self._struct.builtin_data, 0

    def prepare(self, context: Any) -> Eval:
        """Call the C ``prepare`` of the node, and return the evaluation.

        Raises:
            OperatorError: the delegate's function returned an error.
        """
        native = self._native
        with native.called(context):
            if self._functions.prepare is not None:
                status = self._functions.prepare(native.address, self._address)
                native.check(status, "Prepare of its kernel", self._said)
            self._take_over(context)
        return self._eval(context)

    def _take_over(self, context: Any) -> None:
        """Copy the C code's changes of tensor structs to Delegraph's tensors of the node.

        The changes are types and buffer handles of inputs and outputs, and descriptions of working
        memory.
        """
        tensors, node = self._native.tensors, self._structs.node
        for index in _present(node.outputs):
            tensors[index].read_allocation(context)
        for index in _present((*node.inputs, *node.outputs)):
            tensors[index].read_state(self._native.delegate)
        for index in _present(self._structs.temporaries):
            tensors[index].read_description(context)
            tensors[index].provide_memory()

    def _eval(self, context: Any) -> Eval:
        native, invoke = self._native, self._invoke
        address, node_address = native.address, self._address
        owner, delegate = native.tensors.owner, native.delegate
        inputs, outputs, temporaries = self._tensors()

        def run() -> None:
            native.begin(context)
            try:
                for struct in inputs:
                    struct.write(owner(struct.tensor.delegate))
                    struct.write_data()
                for struct in outputs:
                    struct.write(owner(struct.tensor.delegate))
                    struct.write_data_to_fill()
                for struct in temporaries:
                    struct.provide_memory()
                status = invoke(address, node_address)
                native.check(status, "Invoke")
                for struct in inputs:
                    struct.read_state(delegate)
                for struct in outputs:
                    struct.read_filled()
                    struct.read_state(delegate)
            finally:
                native.end()

        return run

    def _tensors(self) -> tuple[list[TensorStruct], list[TensorStruct], list[TensorStruct]]:
        """Return the structs of inputs that the kernel may change, outputs, and working memory."""
        tensors, node = self._native.tensors, self._structs.node
        inputs = [tensors[i] for i in _present(node.inputs)]
        return (
            [found for found in inputs if not found.tensor.is_constant],
            [tensors[i] for i in _present(node.outputs)],
            [tensors[i] for i in _present(self._structs.temporaries)],
        )

    def free(self) -> None:
        """Call the C function ``free`` with the pointer that ``init`` returned."""
        native = self._native
        try:
            if self._free is not None and self._struct.user_data:
                self._free(native.address, self._struct.user_data)
        finally:
            self._struct.user_data = None
            native.drop_node(self._structs)
            native.delegate.release()


def _present(indices: tuple[int, ...]) -> list[int]:
    return [index for index in indices if index >= 0]


def _unused(context: Any, node: Node) -> Eval:
    raise OperatorError("only the runtime's own registration is prepared")
