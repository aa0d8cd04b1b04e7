"""IF, STABLEHLO_CASE, WHILE, STABLEHLO_WHILE and CALL_ONCE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from delegraph.arithmetic.output_shape import check_type
from delegraph.errors import OperatorError
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor
from delegraph.operators.subgraph_call import Callee, Value, give_back
from delegraph.operators.tensor import Tensor, element_count
from delegraph.schema.enums import TensorType


def callee(context: OpContext, index: int) -> Callee:
    """Return the model's subgraph number *index*, ready to be called by the node.

    Raises:
        OperatorError: the subgraph does not exist, or is the node's own.
    """
    return Callee(context, int(index))


def node_outputs(context: OpContext, node: Node) -> list[Tensor | None]:
    """Return the output tensors of a node, with None for each absent output."""
    return [context.tensors[i] if i >= 0 else None for i in node.outputs]


def size_outputs_like(
    context: OpContext, outputs: Sequence[Tensor | None], results: Sequence[Tensor], dynamic: bool
) -> None:
    """Set the shapes of a node's *outputs* to those of *results*, outputs of a called subgraph.

    If *dynamic*, the outputs become dynamic instead.
    """
    for tensor, result in zip(outputs, results, strict=True):
        if tensor is None:
            continue
        check_type(tensor, result, f"output {tensor.name!r}")
        if dynamic:
            context.set_dynamic(tensor)
        else:
            context.resize_tensor(tensor, result.shape)


@kernel("IF")
def prepare_if(context: OpContext, node: Node) -> Eval:
    """Prepare IF: runs one of two subgraphs, chosen by the condition in input 0.

    Source:
        tflite/kernels/if.cc.
    """
    condition = input_tensor(context, node, 0)
    if condition.type is not TensorType.BOOL or element_count(condition.shape) != 1:
        raise OperatorError(
            f"condition is {condition.type.name}{list(condition.shape)}, expected one BOOL"
        )
    options = ("else_subgraph_index", "then_subgraph_index")
    branches = {
        option.split("_")[0]: callee(context, getattr(node.options, option, -1))
        for option in options
    }
    return prepare_branches(
        context, node, branches, lambda: int(bool(condition.data.reshape(-1)[0]))
    )


@kernel("STABLEHLO_CASE")
def prepare_case(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_CASE: runs the subgraph with the number in input 0.

    A number out of range means the last subgraph.

    Source:
        tflite/kernels/stablehlo_case.cc.
    """
    number = input_tensor(context, node, 0)
    if number.type is not TensorType.INT32 or element_count(number.shape) != 1:
        raise OperatorError(f"index is {number.type.name}{list(number.shape)}, expected one INT32")
    indices = getattr(node.options, "branch_subgraph_indices", None)
    if indices is None or not len(indices):
        raise OperatorError("no branches, expected at least one")
    branches = {f"branch {i}": callee(context, index) for i, index in enumerate(indices)}

    def choose() -> int:
        given = int(number.data.reshape(-1)[0])
        return given if 0 <= given < len(branches) else len(branches) - 1

    return prepare_branches(context, node, branches, choose)


def prepare_branches(
    context: OpContext, node: Node, branches: Mapping[str, Callee], choose: Callable[[], int]
) -> Eval:
    """Prepare a node that runs one of several subgraphs on the inputs after input 0.

    At each invoke, *choose* returns the index of the branch in *branches*, which maps names for
    errors to subgraphs. The outputs are dynamic if a branch has dynamic outputs, or if the branches
    return different shapes.
    """
    inputs = [input_tensor(context, node, i) for i in range(1, len(node.inputs))]
    outputs = node_outputs(context, node)
    for name, branch in branches.items():
        branch.check(inputs, len(outputs), name)
        branch.take_shapes([tensor.shape for tensor in inputs])
    callees = list(branches.values())
    shapes = [[tensor.shape for tensor in branch.outputs] for branch in callees]
    differ = any(shape != shapes[-1] for shape in shapes)
    dynamic = differ or any(branch.is_dynamic for branch in callees)
    size_outputs_like(context, outputs, callees[-1].outputs, dynamic)

    def run() -> None:
        branch = callees[choose()]
        branch.take([Value.of(tensor) for tensor in inputs])
        give_back(context, outputs, branch.invoke())

    return run


@kernel("STABLEHLO_WHILE")
@kernel("WHILE")
def prepare_while(context: OpContext, node: Node) -> Eval:
    """Prepare WHILE: runs the body subgraph as long as the condition subgraph returns true.

    The outputs are dynamic if the body changes a shape, or if a shape is known only while invoking.

    Source:
        tflite/kernels/while.cc.
    """
    inputs = [input_tensor(context, node, i) for i in range(len(node.inputs))]
    outputs = node_outputs(context, node)
    condition = callee(context, getattr(node.options, "cond_subgraph_index", -1))
    body = callee(context, getattr(node.options, "body_subgraph_index", -1))
    condition.check(inputs, 1, "condition")
    body.check(inputs, len(inputs), "body")
    if len(outputs) != len(inputs):
        raise OperatorError(f"{len(inputs)} inputs and {len(outputs)} outputs, expected as many")
    shapes = [tensor.shape for tensor in inputs]
    condition.take_shapes(shapes)
    body.take_shapes(shapes)
    _check_condition(condition)
    dynamic = body.is_dynamic or [tensor.shape for tensor in body.outputs] != shapes
    size_outputs_like(context, outputs, body.outputs, dynamic)

    def run() -> None:
        values = [Value.of(tensor) for tensor in inputs]
        condition.take(values)
        while bool(condition.invoke()[0].data.reshape(-1)[0]):
            # Values pass through the condition's inputs, whose memory is separate from the body's.
            # A body that returns its inputs may swap them.
            # body that returns its inputs may swap them.
            body.take(_carried(condition, values))
            values = body.invoke()
            condition.take(values)
        give_back(context, outputs, values)

    return run


def _carried(condition: Callee, values: Sequence[Value]) -> list[Value]:
    return [
        value if tensor is None else Value.of(tensor)
        for tensor, value in zip(condition.inputs, values, strict=True)
    ]


def _check_condition(condition: Callee) -> None:
    result = condition.outputs[0]
    if result.type is not TensorType.BOOL:
        raise OperatorError(f"condition subgraph returns {result.type.name}, expected BOOL")
    if not result.is_dynamic and element_count(result.shape) != 1:
        raise OperatorError(f"condition has shape {list(result.shape)}, expected one element")


@kernel("CALL_ONCE")
def prepare_call_once(context: OpContext, node: Node) -> Eval:
    """Prepare CALL_ONCE: runs a subgraph only at the interpreter's first invoke.

    Source:
        tflite/kernels/call_once.cc.
    """
    index = int(getattr(node.options, "init_subgraph_index", -1))
    initializer = callee(context, index)
    initializer.check((), 0, "initializer")
    done: tuple[Any, ...] = ("call_once", index)

    def run() -> None:
        if done not in context.resources:
            initializer.take_shapes(())
            initializer.invoke()
            context.resources[done] = True

    return run
