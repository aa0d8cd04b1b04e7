"""Lets Delegraph's kernels replace a delegate that fails in an official interpreter.

The runtime cannot go back to its own kernels for nodes that a delegate has replaced. So the
partition becomes a separate model, which Delegraph's interpreter runs. Its inputs, outputs and
variables use the runtime's memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.delegate import DelegateParams
from delegraph.delegation.partition_model import PartitionModel
from delegraph.errors import (
    CallCancelledError,
    DelegateError,
    DelegatePhase,
    ModelError,
    OperatorError,
    PartitionRejected,
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
"""Function that records a delegate's failure at a node, with the phase."""

Pairs = list[tuple[Tensor, Tensor]]
"""Pairs of a tensor in the partition's own model and the same tensor in the graph."""


def with_fallback(
    registration: Registration, report: Report, *, only_rejections: bool = False
) -> Registration:
    """Return a registration that uses Delegraph's kernels for nodes where the delegate fails.

    With *only_rejections*, only nodes whose ``prepare`` rejects the partition's shapes are
    replaced; other failures are raised.
    """
    guard = _Guard(registration, report, only_rejections)
    return replace(registration, prepare=guard.prepare, free=guard.free)


class _Guard:
    """Runs one delegate node; after a failure, Delegraph's kernels compute the node."""

    _kernels: PartitionKernels | None = None
    # Kept as an attribute, because modules may be gone at exit.
    _is_finalizing = staticmethod(sys.is_finalizing)

    def __init__(self, registration: Registration, report: Report, only_rejections: bool) -> None:
        self._registration = registration
        self._report = report
        self._only_rejections = only_rejections

    def prepare(self, context: Any, node: Node) -> Eval:
        """Prepare the delegate's node, or else Delegraph's kernels; return the evaluation."""
        self._close()
        kernels = self._kernels = PartitionKernels(context, node)
        try:
            step = self._registration.prepare(context, node)
        except Exception as error:
            if self._only_rejections and not isinstance(error, PartitionRejected):
                raise
            self._report_or_raise(kernels, "prepare", error)
            kernels.size_outputs()
            return kernels.run
        if self._only_rejections:
            return step
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
        is_rejection = isinstance(error, PartitionRejected)  # the phase of a rejection is init
        told = error.phase if isinstance(error, DelegateError) and not is_rejection else None
        self._report(kernels.context, kernels.node, told or phase, error)

    def free(self, user_data: Any) -> None:
        """Free the delegate's kernel and Delegraph's kernels."""
        if self._registration.free is not None:
            self._registration.free(user_data)
        self._close()

    def _close(self) -> None:
        if self._kernels is not None and not self._is_finalizing():
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
        self._inputs: Pairs = []
        self._state: Pairs = []
        self._results: Pairs = []
        self._obstacle: str | None = None  # empty means none; None means unknown

    def copied_variables(self) -> list[tuple[Tensor, NDArray[Any]]]:
        """Return the variables that the partition may change, with copies of their values."""
        return [(tensor, tensor.data.copy()) for tensor in self._variables]

    # -- getting ready -------------------------------------------------------------------------

    def obstacle(self) -> str:
        """Text that says why the kernels cannot compute the partition; empty if they can."""
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
        require_own_state(self.context, self.node)
        model = cast(DelegateParams, self.node.options).partition_model()
        interpreter = partition_interpreter(self.context, model)
        interpreter.allocate_tensors()
        own = interpreter.subgraph()
        self._inputs, self._results, self._state = paired(own, self.context, model)
        self._interpreter = interpreter

    def size_outputs(self) -> None:
        """Set the shapes of the partition's outputs, as Delegraph's kernels compute them.

        If shapes are known only during invoke, the outputs are made dynamic instead.
        """
        for inner, tensor in self._results:
            if self._is_open():
                self.context.set_dynamic(tensor)
            else:
                self.context.resize_tensor(tensor, inner.shape)

    def _is_open(self) -> bool:
        """Whether an input or inner tensor has a shape that is known only during invoke."""
        if any(tensor.is_dynamic for _, tensor in self._inputs):
            return True
        return self._fit().subgraph().has_dynamic_tensors

    def _fit(self) -> Interpreter:
        """Return the partition's interpreter, allocated for the present shapes of the inputs."""
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
            OperatorError: an output's memory is for another shape, which the delegate has set.
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


def partition_interpreter(
    context: LiteRtContext, model: PartitionModel, **more: Any
) -> Interpreter:
    """Return an interpreter of Delegraph for a partition, with the options of its context.

    *more* are other arguments of the interpreter, such as delegates.
    """
    limit = context.memory_limit
    return Interpreter(
        model_content=model.content,
        num_threads=context.num_threads,
        numerics=context.numerics,
        custom_ops=context.custom_ops,
        limits=Limits(
            memory=None if limit.is_default else limit.bytes, cancellation=context.cancellation
        ),
        **{"delegates": [], **more},
    )


def require_own_state(context: LiteRtContext, node: Node) -> None:
    """Check that a partition has no state that a separate interpreter would lack.

    Raises:
        DelegateError: the partition has such state.
    """
    replaced = node.options.nodes_to_replace
    nodes = [context.get_node_and_registration(index)[0] for index in replaced]
    for inner in nodes:
        if any(True for _ in called_subgraphs(inner.options)):
            raise DelegateError(
                f"node {inner.index} calls a subgraph, whose state is the runtime's"
            )
    touched = {i for inner in nodes for i in (*inner.inputs, *inner.outputs) if i >= 0}
    for tensor in (context.tensors[index] for index in sorted(touched)):
        if tensor.type in _HANDLES:
            raise DelegateError(f"{tensor!r} is a resource, and those are the runtime's")
        if tensor.buffer_handle != NULL_BUFFER_HANDLE:
            raise DelegateError(f"{tensor!r} is in a buffer of the delegate's own")


_HANDLES = (TensorType.RESOURCE, TensorType.VARIANT)


def paired(
    own: CallableSubgraph, context: LiteRtContext, model: PartitionModel
) -> tuple[Pairs, Pairs, Pairs]:
    """Match the tensors of two forms of a partition; return pairs of inputs, outputs, variables.

    *context* is that of the official interpreter's subgraph with the partition.
    """
    state = [i for i, tensor in enumerate(own.tensors) if tensor.is_variable]
    return (
        _pairs(own, own.inputs, context, model.inputs),
        _pairs(own, own.outputs, context, model.outputs),
        _pairs(own, state, context, [model.tensors[i] for i in state]),
    )


def _pairs(
    own: CallableSubgraph, inner: Sequence[int], context: LiteRtContext, outer: Sequence[int]
) -> Pairs:
    both = zip(inner, outer, strict=True)
    return [(own.tensors[i], context.tensors[j]) for i, j in both]
