"""Delegate kernel: an executor runs one partition of Flex operators in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from delegraph import (
    DelegateContext,
    DelegateParams,
    Node,
    SimpleDelegateKernelInterface,
    Tensor,
)
from delegraph.errors import OperatorError
from delegraph.operators import MemoryLimit
from delegraph_flex.data_types import HANDLES
from delegraph_flex.dynamic_shapes import VALUE_DEPENDENT, is_as_declared, is_open
from delegraph_flex.executor import Executor, Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import LIMIT

_SEVERAL = (list, tuple)
"""Types of a step's result that mean several outputs.

The constant exists because `list | tuple` would be evaluated at each use.
"""


class Call(NamedTuple):
    """One operator of a partition, ready to run: its function, inputs and outputs.

    Attributes:
        step: function that computes the operator.
        inputs: indices of its inputs in the list of values.
        outputs: indices of its outputs in the list of values.
        done: indices of values that no later operator needs.
        node: the operator's node, for errors.
    """

    step: Step
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    done: tuple[int, ...]
    node: FlexNode


class Place(NamedTuple):
    """An input or output tensor of the partition, and its index in the kernel's list of values."""

    place: int
    tensor: Tensor


class FlexKernel(SimpleDelegateKernelInterface):
    """Delegate kernel of one partition; intermediate values stay in the executor's representation.

    Args:
        executor: executor that runs the operators.
        flex_node: function that returns the FlexNode, for executors, of a node of the graph.
    """

    def __init__(
        self, executor: Executor, flex_node: Callable[[Node, DelegateContext], FlexNode]
    ) -> None:
        self._executor = executor
        self._flex_node = flex_node
        self._calls: list[Call] = []
        self._constants: list[Any] = []
        self._entering: list[Place] = []
        self._leaving: list[Place] = []
        self._open_outputs: set[int] = set()
        self._limit = MemoryLimit.of_machine()

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self._limit = context.memory_limit
        nodes = [context.get_node_and_registration(i)[0] for i in params.nodes_to_replace]
        places: dict[int, int] = {}
        for index in (*params.input_tensors, *(i for node in nodes for i in node.outputs)):
            places.setdefault(index, len(places))
        self._constants = [None] * len(places)
        for index in params.input_tensors:
            tensor = context.tensors[index]
            if tensor.is_constant:
                self._constants[places[index]] = self._executor.enter(tensor.data, tensor.type)
            else:
                self._entering.append(Place(places[index], tensor))
        self._leaving = [Place(places[i], context.tensors[i]) for i in params.output_tensors]
        done = _last_uses(nodes, set(params.output_tensors))
        for node in nodes:
            flex_node = self._flex_node(node, context)
            step = self._executor.bind(flex_node)
            ends = tuple(places[i] for i in done.get(node.index, ()))
            inputs = tuple(places[i] for i in node.inputs)
            outputs = tuple(places[i] for i in node.outputs)
            self._calls.append(Call(step, inputs, outputs, ends, flex_node))
            if flex_node.op in VALUE_DEPENDENT:
                self._open_outputs.update(node.outputs)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        as_declared = is_as_declared(tensor for _, tensor in self._entering)
        any_open = any(tensor.index in self._open_outputs for _, tensor in self._leaving)
        for _, tensor in self._leaving:
            if tensor.type in HANDLES:
                context.resize_tensor(tensor, ())
            elif any_open or not as_declared or is_open(tensor):
                context.set_dynamic(tensor)
            else:
                context.resize_tensor(tensor, tensor.shape_signature)

    def eval(self, context: DelegateContext, node: Node) -> None:
        values = self._constants.copy()
        executor = self._executor
        for place, tensor in self._entering:
            values[place] = executor.enter(tensor.data, tensor.type)
        token = LIMIT.set(self._limit)
        try:
            with np.errstate(all="ignore"):
                self._run(values)
        finally:
            LIMIT.reset(token)
        for place, tensor in self._leaving:
            _store(context, tensor, executor.leave(values[place], tensor.type))

    def _run(self, values: list[Any]) -> None:
        """Run all operators of the partition, which add their results to *values*."""
        call: Call | None = None
        try:
            for call in self._calls:
                step, inputs, outputs, done, _ = call
                result = step(*[values[i] for i in inputs])
                if len(outputs) == 1:
                    is_list = isinstance(result, _SEVERAL)
                    values[outputs[0]] = result[0] if is_list else result
                else:
                    for place, value in zip(outputs, result if outputs else (), strict=True):
                        values[place] = value
                for place in done:
                    values[place] = None
        except Exception as error:
            raise OperatorError(_failure(call, error)) from error


def _last_uses(nodes: list[Node], kept: set[int]) -> dict[int, list[int]]:
    """Return, for each node index, the tensors computed in *nodes* that this node reads last.

    Tensors in *kept* are left out.
    """
    made = {i for node in nodes for i in node.outputs} - kept
    last = {i: node.index for node in nodes for i in (*node.outputs, *node.inputs) if i in made}
    done: dict[int, list[int]] = {}
    for tensor, index in last.items():
        done.setdefault(index, []).append(tensor)
    return done


def _failure(call: Call | None, error: Exception) -> str:
    if call is None:
        return f"{type(error).__name__}: {error}"
    reason = str(error) or type(error).__name__
    return f"node {call.node.index} (Flex{call.node.op}): {reason}"


def _store(context: DelegateContext, tensor: Tensor, value: Any) -> None:
    if value.dtype != tensor.dtype:
        raise OperatorError(f"{tensor!r} got values of {value.dtype}, expected {tensor.dtype}")
    if tensor.data is None or (tensor.is_dynamic and tensor.shape != value.shape):
        context.resize_tensor(tensor, value.shape)
    elif tensor.shape != value.shape:
        raise OperatorError(f"{tensor!r} got values of shape {list(value.shape)}")
    np.copyto(tensor.data, value)
