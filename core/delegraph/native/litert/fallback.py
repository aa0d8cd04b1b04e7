"""Fallback: Delegraph's kernels compute for a delegate that fails in an official interpreter.

The runtime cannot go back to its own kernels for nodes that a delegate has replaced. So the
partition becomes a separate model. An interpreter of Delegraph runs it on the runtime's memory for
inputs, outputs and variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.delegate import DelegateParams
from delegraph.errors import (
    CallCancelledError,
    DelegateError,
    DelegatePhase,
    ModelError,
    OperatorError,
    in_words,
)
from delegraph.graph.calls import called_subgraphs
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.native.abi import NULL_BUFFER_HANDLE
from delegraph.native.litert.context import LiteRtContext
from delegraph.operators.registration import CallableSubgraph, Eval, Node, Registration
from delegraph.operators.tensor import Tensor
from delegraph.runtime.interpreter import Interpreter
from delegraph.runtime.options import Limits
from delegraph.schema.enums import TensorType

Report = Callable[[LiteRtContext, Node, DelegatePhase, Exception], None]
"""Function that records that a delegate failed at one of its nodes, and in which phase."""

_Pairs = list[tuple[Tensor, Tensor]]
"""Pairs of a tensor of the partition's model and the same tensor of the graph."""


def with_fallback(registration: Registration, report: Report) -> Registration:
    """Return a registration whose failures are reported and replaced by Delegraph's kernels.

    Args:
        registration: registration of the delegate's nodes.
        report: is called for each failure.
    """
    guard = _Guard(registration, report)
    return replace(registration, prepare=guard.prepare, free=guard.free)


class _Guard:
    """Runs one delegate node; after a failure, Delegraph's kernels compute the node."""

    _kernels: PartitionKernels | None = None

    def __init__(self, registration: Registration, report: Report) -> None:
        self._registration = registration
        self._report = report

    def prepare(self, context: Any, node: Node) -> Eval:
        """Prepare the delegate's node, or else Delegraph's kernels; return the evaluation."""
        self._close()
        kernels = self._kernels = PartitionKernels(context, node)
        try:
            step = self._registration.prepare(context, node)
        except Exception as error:  # noqa: BLE001 - a plugin's code
            self._report_or_raise(kernels, "prepare", error)
            kernels.size_outputs()
            return kernels.run
        return partial(self._run, kernels, step)

    def _run(self, kernels: PartitionKernels, step: Eval) -> None:
        variables = kernels.copied_variables()
        arrays = [(tensor, tensor.data) for tensor in kernels.outputs]
        try:
            step()
        except Exception as error:  # noqa: BLE001 - a plugin's code
            self._report_or_raise(kernels, "eval", error)
            for tensor, data in arrays:
                tensor.data = data
            for tensor, values in variables:
                np.copyto(tensor.data, values)
            kernels.run()

    def _report_or_raise(
        self, kernels: PartitionKernels, phase: DelegatePhase, error: Exception
    ) -> None:
        if isinstance(error, CallCancelledError):
            raise error
        obstacle = kernels.obstacle()
        if obstacle:
            raise OperatorError(
                f"{in_words(error)}; Delegraph's kernels cannot take over: {obstacle}"
            ) from error
        told = error.phase if isinstance(error, DelegateError) else None
        self._report(kernels.context, kernels.node, told or phase, error)

    def free(self, user_data: Any) -> None:
        """Free the delegate's kernel and Delegraph's kernels."""
        if self._registration.free is not None:
            self._registration.free(user_data)
        self._close()

    def _close(self) -> None:
        if self._kernels is not None:
            self._kernels.close()


class PartitionKernels:
    """Computes a partition with Delegraph's kernels, on the official runtime's tensors.

    The interpreter is created when it is first needed.

    Attributes:
        context: context of the subgraph.
        node: the delegate node.
        outputs: outputs of the partition.
    """

    def __init__(self, context: LiteRtContext, node: Node) -> None:
        self.context = context
        self.node = node
        self.outputs = [context.tensors[index] for index in node.outputs]
        read = [context.tensors[index] for index in node.inputs if index >= 0]
        self._variables = [tensor for tensor in read if tensor.is_variable]
        self._interpreter: Interpreter | None = None
        self._inputs: _Pairs = []
        self._state: _Pairs = []
        self._results: _Pairs = []
        self._obstacle: str | None = None  # empty means none; None means unknown

    def copied_variables(self) -> list[tuple[Tensor, NDArray[Any]]]:
        """Return the variables that the partition may change, with copies of their values."""
        return [(tensor, tensor.data.copy()) for tensor in self._variables]

    # -- getting ready -------------------------------------------------------------------------

    def obstacle(self) -> str:
        """Return the reason why the kernels cannot compute the partition; empty if they can."""
        if self._obstacle is None:
            try:
                self._open()
                self._obstacle = ""
            except (ModelError, DelegateError) as error:
                self._obstacle = str(error)
        return self._obstacle

    def _open(self) -> None:
        """Create the interpreter of the partition.

        Raises:
            ModelError: Delegraph's kernels do not support the partition.
            DelegateError: the partition cannot be a separate model.
        """
        self._require_own_state()
        context, params = self.context, cast(DelegateParams, self.node.options)
        model = params.partition_model()
        interpreter = Interpreter(
            model_content=model.content,
            delegates=[],
            num_threads=context.num_threads,
            numerics=context.numerics,
            custom_ops=context.custom_ops,
            limits=Limits(cancellation=context.cancellation),
        )
        interpreter.allocate_tensors()
        own, tensors = interpreter.subgraph(), context.tensors
        self._inputs = _paired(own, own.inputs, [tensors[i] for i in model.inputs])
        self._results = _paired(own, own.outputs, [tensors[i] for i in model.outputs])
        state = [i for i, tensor in enumerate(own.tensors) if tensor.is_variable]
        self._state = _paired(own, state, [tensors[model.tensors[i]] for i in state])
        self._interpreter = interpreter

    def _require_own_state(self) -> None:
        """Check that the partition has no state that a separate interpreter would lack.

        Raises:
            DelegateError: it has such state.
        """
        context = self.context
        replaced = self.node.options.nodes_to_replace
        nodes = [context.get_node_and_registration(index)[0] for index in replaced]
        for node in nodes:
            if any(True for _ in called_subgraphs(node.options)):
                raise DelegateError(
                    f"node {node.index} calls a subgraph, whose state is the runtime's"
                )
        touched = {i for node in nodes for i in (*node.inputs, *node.outputs) if i >= 0}
        for tensor in (context.tensors[index] for index in sorted(touched)):
            if tensor.type in _HANDLES:
                raise DelegateError(f"{tensor!r} is a resource, and those are the runtime's")
            if tensor.buffer_handle != NULL_BUFFER_HANDLE:
                raise DelegateError(f"{tensor!r} is in a buffer of the delegate's own")

    def size_outputs(self) -> None:
        """Set the shapes of the outputs to those that the kernels compute."""
        for inner, tensor in self._results:
            if self._is_open():
                self.context.set_dynamic(tensor)
            else:
                self.context.resize_tensor(tensor, inner.shape)

    def _is_open(self) -> bool:
        """Return whether an input or inner tensor has a shape that is known only during invoke."""
        if any(tensor.is_dynamic for _, tensor in self._inputs):
            return True
        return self._fit().subgraph().has_dynamic_tensors

    def _fit(self) -> Interpreter:
        """Return the interpreter, allocated for the present shapes of the inputs."""
        assert self._interpreter is not None  # obstacle() has created it
        changed = [(i, t) for i, t in self._inputs if i.shape != t.shape]
        for inner, tensor in changed:
            self._interpreter.resize_tensor_input(inner.index, tensor.shape)
        if changed:
            self._interpreter.allocate_tensors()
        return self._interpreter

    # -- running -------------------------------------------------------------------------------

    def run(self) -> None:
        """Compute the outputs of the partition with Delegraph's kernels.

        Raises:
            NodeError: a kernel failed.
            OperatorError: an output has memory for another shape, which the delegate has set.
        """
        interpreter = self._fit()
        for inner, tensor in (*self._inputs, *self._state):
            inner.data = tensor.data
        interpreter.invoke()
        own = interpreter.subgraph()
        for inner, tensor in self._results:
            result = own.readable(inner.index)
            if tensor.is_dynamic or tensor.type in OBJECT_TYPES or tensor.shape != result.shape:
                self.context.resize_tensor(tensor, result.shape)
            np.copyto(tensor.data, result.data)

    def close(self) -> None:
        """Close the interpreter of the partition."""
        if self._interpreter is not None:
            self._interpreter.close()


_HANDLES = (TensorType.RESOURCE, TensorType.VARIANT)


def _paired(own: CallableSubgraph, indices: Any, tensors: list[Tensor]) -> _Pairs:
    return list(zip([own.tensors[index] for index in indices], tensors, strict=True))
