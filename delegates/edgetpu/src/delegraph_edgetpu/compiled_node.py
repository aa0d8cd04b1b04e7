"""Runs an ``edgetpu-custom-op`` node: an interpreter runs the model in the node's executable."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from delegraph import Interpreter, Limits, Node, OpContext, Tensor
from delegraph.errors import OperatorError
from delegraph.operators import CallableSubgraph, Eval, input_tensor, output_tensor
from delegraph_edgetpu.custom_options import read_custom_options
from delegraph_edgetpu.devices import Device, Parameters, device_named
from delegraph_edgetpu.errors import ExecutableError, NeedsDevice
from delegraph_edgetpu.executable import Executable, RealExecutable, parse
from delegraph_edgetpu.options import EdgeTpuOptions
from delegraph_edgetpu.real_executables import explain_refusal, parameters_of_real
from delegraph_edgetpu.twins import twin_model


class Operands(NamedTuple):
    """Input and output tensors of a node, and the function that resizes an output.

    Attributes:
        inputs: input tensors, which may include variables.
        outputs: output tensors.
        resize: function that sets the shape of the output at a position.
    """

    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    resize: Callable[[Sequence[int], int], None]

    @classmethod
    def of(cls, context: OpContext, node: Node) -> Operands:
        """Return the operands of a node, from its tensors in the graph."""
        outputs = [output_tensor(context, node, i) for i in range(len(node.outputs))]
        return cls(
            [input_tensor(context, node, i) for i in range(len(node.inputs))],
            outputs,
            lambda shape, i: context.resize_tensor(outputs[i], shape),
        )


class Loan(NamedTuple):
    """A tensor of the executable's model that uses the memory of a tensor of the graph."""

    inner: Tensor
    outer: Tensor


class CompiledNode:
    """Runs one custom operator of a graph; the executable is parsed at the first prepare.

    The executable's interpreter uses the memory of the graph's inputs, outputs and variables, so no
    value is copied.

    Args:
        options: options of the delegate: device, delegate and twin (the uncompiled model).
        executable: function that returns the bytes of the executable.

    Attributes:
        interpreter: interpreter that runs the twin; None before the first preparation and after the
            end.
    """

    def __init__(self, options: EdgeTpuOptions, executable: Callable[[], bytes]) -> None:
        self._options = options
        self._executable = executable
        self._device: Device = device_named(options.device)
        self.interpreter: Interpreter | None = None
        self._parameters = Parameters(b"", 0, 0, 0)

    @classmethod
    def of(cls, node: Node, options: EdgeTpuOptions) -> CompiledNode:
        """Return the runner of an ``edgetpu-custom-op``, whose options store the executable."""
        return cls(options, partial(read_custom_options, node.custom_options))

    def prepare(self, context: OpContext, operands: Operands, num_threads: int | None) -> Eval:
        """Return the evaluation of the node.

        Args:
            context: context of the subgraph.
            operands: tensors of the node.
            num_threads: number of threads; None leaves the choice to the delegate ``via``.

        Raises:
            ExecutableError: the executable is damaged.
            NeedsDevice: only a real device can run the executable, and there is no twin.
            OperatorError: the tensors differ from those for which the executable was compiled.
        """
        inputs, outputs, resize = operands
        if self.interpreter is None:
            self.interpreter = self._opened(context, num_threads, inputs, outputs)
        subgraph = self.interpreter.subgraph()
        _require_count(subgraph, inputs, outputs)
        read = [tensor for tensor in inputs if not tensor.is_variable]
        for inner, tensor in zip(_tensors(subgraph, subgraph.inputs), read, strict=True):
            _require_same("input", inner, tensor)
        for i, inner in enumerate(_tensors(subgraph, subgraph.outputs)):
            _require_same_type("output", inner, outputs[i])
            resize(inner.shape, i)
        state = [tensor for tensor in inputs if tensor.is_variable]
        return self._step(subgraph, read, outputs, _state_loans(subgraph, state))

    def close(self) -> None:
        """Close the executable's interpreter, if there is one."""
        interpreter, self.interpreter = self.interpreter, None
        if interpreter is not None:
            interpreter.close()

    def _step(
        self,
        subgraph: CallableSubgraph,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        state: Sequence[Loan],
    ) -> Eval:
        """Return the evaluation that runs the executable on the memory of the graph's tensors.

        *state* pairs variables of the executable's model with those of the graph.
        """
        assert self.interpreter is not None
        invoke, running, parameters = (
            self.interpreter.invoke,
            self._device.running,
            self._parameters,
        )
        results = [*map(Loan, _tensors(subgraph, subgraph.outputs), outputs)]
        loans = [
            *map(Loan, _tensors(subgraph, subgraph.inputs), inputs),
            *state,
            *(loan for loan in results if not _has_memory(loan.inner, subgraph)),
        ]

        def run() -> None:
            with running(parameters):
                for inner, outer in loans:
                    inner.data = outer.data
                invoke()
                for inner, outer in results:
                    found = subgraph.readable(inner.index).data
                    if found is not outer.data:
                        np.copyto(outer.data, found)

        return run

    def _opened(
        self,
        context: OpContext,
        num_threads: int | None,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
    ) -> Interpreter:
        """Return an allocated interpreter of the executable's model.

        *inputs* and *outputs* are tensors of the node; *num_threads* is that of :meth:`prepare`.
        """
        content = self._executable()
        executable = parse(content)
        if isinstance(executable, RealExecutable):
            if not self._options.twin:
                raise NeedsDevice(explain_refusal(executable))
            read = [tensor for tensor in inputs if not tensor.is_variable]
            model = twin_model(self._options.twin, read, outputs)
            self._parameters = parameters_of_real(executable)
        else:
            model = executable.model
            self._parameters = parameters_of(executable, content)
        limit = context.memory_limit
        interpreter = Interpreter(
            model_content=model,
            delegates=[self._options.via] if self._options.via else [],
            num_threads=num_threads,
            numerics=context.numerics,
            limits=Limits(
                memory=None if limit.is_default else limit.bytes,
                cancellation=getattr(context, "cancellation", None),
            ),  # contexts of kernels may lack this attribute
        )
        interpreter.allocate_tensors()
        if interpreter.subgraph().has_dynamic_tensors:
            raise ExecutableError("the executable's model has shapes known only while it runs")
        return interpreter


def parameters_of(executable: Executable, content: bytes) -> Parameters:
    """Return the sizes, key and caching token of an executable's parameters, for a device."""
    return Parameters(
        hashlib.blake2b(content, digest_size=16).digest(),
        executable.caching_token,
        executable.cached_bytes,
        executable.parameter_bytes - executable.cached_bytes,
    )


def _tensors(subgraph: CallableSubgraph, indices: Sequence[int]) -> list[Tensor]:
    return [subgraph.tensors[index] for index in indices]


def _has_memory(output: Tensor, subgraph: CallableSubgraph) -> bool:
    """Whether *output* needs separate memory.

    This holds for a tensor of *subgraph* that is also an input, a variable or a constant.
    """
    return output.index in subgraph.inputs or output.is_variable or output.is_constant


def _require_count(
    subgraph: CallableSubgraph, inputs: Sequence[Tensor], outputs: Sequence[Tensor]
) -> None:
    read = sum(not tensor.is_variable for tensor in inputs)
    for what, found, expected in (
        ("inputs", read, len(subgraph.inputs)),
        ("outputs", len(outputs), len(subgraph.outputs)),
    ):
        if found != expected:
            raise OperatorError(f"the node has {found} {what}, its executable expects {expected}")


def _require_same(what: str, inner: Tensor, tensor: Tensor) -> None:
    _require_same_type(what, inner, tensor)
    if inner.shape != tensor.shape:
        raise OperatorError(
            f"{what} {tensor!r} was compiled as {list(inner.shape)}; models for the Edge TPU keep "
            "the shapes that they were compiled with: resize the uncompiled model, and compile that"
        )


def _require_same_type(what: str, inner: Tensor, tensor: Tensor) -> None:
    if inner.type != tensor.type:
        raise OperatorError(f"{what} {tensor!r} was compiled as {inner.type.name}")


def _state_loans(subgraph: CallableSubgraph, state: Sequence[Tensor]) -> list[Loan]:
    """Pair the variables of the graph with the variables of the executable's model.

    Variables of equal names are paired; otherwise the first variable of equal type and shape is
    used.


    Raises:
        OperatorError: a variable of the graph has no counterpart.
    """
    free = [tensor for tensor in subgraph.tensors if tensor.is_variable]
    loans = []
    for tensor in state:
        fitting = [v for v in free if (v.type, v.shape) == (tensor.type, tensor.shape)]
        if not fitting:
            raise OperatorError(f"the executable has no state like the variable {tensor!r}")
        inner = next((v for v in fitting if v.name == tensor.name), fitting[0])
        free.remove(inner)
        loans.append(Loan(inner, tensor))
    return loans
