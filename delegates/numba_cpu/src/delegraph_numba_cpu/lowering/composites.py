"""Replaces a STABLEHLO_COMPOSITE node by the nodes of its decomposition.

The values inside then stay in the program's memory, and fusers see nodes on both sides of the
composite's border.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from delegraph import DelegateContext, Node, Registration, Rejection, Tensor
from delegraph.errors import ArgumentError, DelegateError, OperatorError, in_words
from delegraph_numba_cpu.lowering.checks import (
    ROUNDED_TYPES,
    check_quantization,
    first_rejection,
)
from delegraph_numba_cpu.lowering.registry import (
    OPERATORS,
    Call,
    Operator,
    register,
    with_operands,
)
from delegraph_numba_cpu.program.builder import ProgramBuilder

COMPOSITE = "STABLEHLO_COMPOSITE"

MOST_NODES = 4096
"""Largest number of nodes that replace one composite."""


class InlinedContext:
    """The host's context, with tensors of inlined subgraphs after the host's tensors.

    Attributes:
        tensors: tensors of the host, then copies of inner tensors, with indices in this list.
    """

    def __init__(self, context: DelegateContext) -> None:
        self._host = context
        self.tensors: list[Tensor] = [*context.tensors]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    def add(self, tensor: Tensor) -> int:
        """Append a copy of *tensor*, which belongs to another subgraph.

        Return its index in ``tensors``.
        """
        index, is_constant = len(self.tensors), tensor.is_constant
        copy = Tensor(
            index, tensor.type, tensor.shape,
            name=tensor.name, quantization=tensor.quantization, sparsity=tensor.sparsity,
            shape_signature=tensor.shape_signature, has_rank=tensor.has_rank,
        )  # fmt: skip
        if is_constant:
            copy.allocation_type, copy.data = tensor.allocation_type, tensor.data
        self.tensors.append(copy)
        return index


def inlined(calls: Sequence[Call]) -> list[Call]:
    """Return *calls* with each composite replaced by the nodes of its decomposition.

    The decomposition's inputs get the shapes of the composite's inputs.

    Raises:
        OperatorError: a shape inside is known only while invoking.
    """
    if all(call.name != COMPOSITE for call in calls):
        return [*calls]
    context: Any = InlinedContext(calls[0].context)
    outer = [replace(call, context=context) for call in calls]
    return [each for call in outer for each in _expanded(call, is_sized=True)]


def _expanded(call: Call, *, is_sized: bool, left: int = MOST_NODES) -> Iterator[Call]:
    """Yield *call*; if it is a composite, yield the nodes of its decomposition instead.

    Inner subgraphs get shapes if *is_sized*. At most *left* nodes are yielded.

    Raises:
        OperatorError: there are too many nodes.
    """
    if call.name != COMPOSITE:
        yield call
        return
    inner = _called(call)
    if is_sized:
        _give_shapes(call, inner)
    context: Any = call.context
    numbers = dict(zip(inner.inputs, call.node.inputs, strict=True))
    numbers.update(zip(inner.outputs, call.node.outputs, strict=True))
    numbers[-1] = -1
    for index in inner.get_execution_plan():
        node, registration = inner.get_node_and_registration(index)
        for tensor in (*node.inputs, *node.outputs, *node.intermediates):
            if tensor not in numbers:
                numbers[tensor] = context.add(inner.tensors[tensor])
        operands = (
            tuple(numbers[i] for i in each)
            for each in (node.inputs, node.outputs, node.intermediates)
        )
        own = with_operands(node, call.node.index, *operands)
        for each in _expanded(Call(context, own, registration.name), is_sized=is_sized, left=left):
            left -= 1
            if left < 0:
                raise OperatorError(f"more than {MOST_NODES} nodes would take its place")
            yield each


def _called(call: Call) -> DelegateContext:
    return call.context.acquire_subgraph_context(int(call.options.decomposition_subgraph_index))


def _give_shapes(call: Call, inner: DelegateContext) -> None:
    """Make the host compute the shapes inside a composite if its input shapes have changed.

    *inner* is its decomposition.

    Raises:
        OperatorError: a shape inside is known only while invoking.
    """
    shapes = [call.input(i).shape for i in range(len(call.node.inputs))]
    if [inner.tensors[i].shape for i in inner.inputs] != shapes:
        subgraph = call.context.subgraph(inner.subgraph_index)
        for index, shape in zip(inner.inputs, shapes, strict=True):
            subgraph.resize_input(index, shape)
        subgraph.allocate()
    for index in inner.get_execution_plan():
        for tensor in inner.get_node_and_registration(index)[0].outputs:
            if tensor >= 0 and inner.tensors[tensor].is_dynamic:
                name = inner.tensors[tensor].name
                raise OperatorError(f"the shape of {name!r} inside is known only while invoking")


def check_composite(call: Call) -> Rejection | None:
    """Return a rejection unless all nodes of the decomposition are supported."""
    context: Any = InlinedContext(call.context)
    call = replace(call, context=context)
    try:
        found = _check_borders(call)
        if found is not None:
            return found
        return first_rejection(*map(_check_inner, _expanded(call, is_sized=False)))
    except (ArgumentError, DelegateError, OperatorError) as error:
        return Rejection("subgraph", in_words(error))


def _check_borders(call: Call, active: tuple[int, ...] = ()) -> Rejection | None:
    """Return a rejection unless operands match the decomposition's inputs and outputs.

    Decompositions that cannot be inlined are rejected, too. Composites inside the decomposition are
    checked as well.
    """
    index = int(call.options.decomposition_subgraph_index)
    if index in active:
        return Rejection("subgraph", f"subgraph {index} calls itself")
    call.context.subgraph(index)  # LiteRT does not let a delegate's kernel prepare another subgraph
    inner = _called(call)
    if inner.refused_nodes:
        return Rejection("subgraph", f"subgraph {index} has nodes that are not well-formed")
    plan = [inner.get_node_and_registration(i) for i in inner.get_execution_plan()]
    made = {i for node, _ in plan for i in node.outputs}
    used = made.union(*(node.inputs for node, _ in plan)) - {-1}
    borders = [*inner.inputs, *inner.outputs]
    if len(set(borders)) < len(borders) or not made.issuperset(inner.outputs):
        return Rejection("subgraph", "an output is no node's own, or has a name more")
    if not _is_in_order(inner, plan):
        return Rejection("subgraph", f"subgraph {index} reads a value before a node computes it")
    if any(inner.tensors[i].is_variable for i in used):
        return Rejection("subgraph", "it keeps values in variables")
    if call.context.numerics != "builtin":
        for tensor in (inner.tensors[i] for i in used):
            if tensor.type.name in ROUNDED_TYPES:
                return Rejection("numerics", actual=call.context.numerics, expected="builtin")
    operands = (*call.node.inputs, *call.node.outputs)
    if len(operands) != len(borders) or min(operands) < 0:
        return Rejection("subgraph", "operands are absent")
    for given, own in zip(operands, borders, strict=True):
        outer = call.context.tensors[given]
        if outer.is_dynamic or not _are_alike(outer, inner.tensors[own]):
            return Rejection("subgraph", "an operand differs from that inside", tensor=given)
    for node, registration in plan:
        if registration.name == COMPOSITE:
            found = _check_borders(Call(inner, node, registration.name), (*active, index))
            if found is not None:
                return found
    return None


def _is_in_order(inner: DelegateContext, plan: Sequence[tuple[Node, Registration]]) -> bool:
    """Whether each node of *plan* reads only inputs, constants and results of earlier nodes.

    *inner* is the context of the subgraph that has these nodes.
    """
    known = {-1, *inner.inputs}
    for node, _ in plan:
        if any(i not in known and not inner.tensors[i].is_constant for i in node.inputs):
            return False
        known.update(node.outputs)
    return True


def _are_alike(outer: Tensor, inner: Tensor) -> bool:
    """Whether an operand and the decomposition's tensor have equal type and quantization."""
    if outer.type is not inner.type or inner.is_constant:
        return False
    a, b = outer.quantization, inner.quantization
    if a is None or b is None:
        return a is b
    axes = (a.quantized_dimension, a.block_size) == (b.quantized_dimension, b.block_size)
    points = np.array_equal(a.zero_points, b.zero_points)
    return axes and points and np.array_equal(a.scales, b.scales)


def _check_inner(call: Call) -> Rejection | None:
    operator = OPERATORS.get(call.name)
    if operator is None or call.node.delegate is not None:
        found: Rejection | None = Rejection("op", f"numba_cpu has no kernel for {call.name}")
    else:
        found = check_quantization(call)
        if found is None:
            found = operator.rejection(call)
    return None if found is None else Rejection("subgraph", f"{call.name} inside: {found}")


def lower_composite(call: Call, builder: ProgramBuilder) -> None:
    """Raise an error; it is never called, because :func:`inlined` replaces all composites."""
    raise OperatorError(f"{call.name} was not replaced by its nodes")


# Operands may have all types that the inner nodes take; claimed are the types of the kit's models.
register({COMPOSITE: Operator(check_composite, lower_composite, ("FLOAT32",), ("subgraph",))})
