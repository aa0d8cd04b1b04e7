"""Finds node inputs that never get a value, and nodes whose operands overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from delegraph.errors import NodeError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.graph.model import OperatorSpec, SubgraphSpec, column_of, variables_of
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import BuiltinOperator

MissingInputs = Sequence[tuple[OperatorSpec, int]]
"""Pairs of an operator and a tensor that it reads and that never gets a value, in plan order."""


def missing_inputs(subgraph: SubgraphSpec) -> MissingInputs:
    """Return the node inputs that no graph input, constant, variable or earlier node provides.

    The time is linear in the number of nodes and their tensors.

    Source:
        Subgraph::InvokeImpl, tflite/core/subgraph.cc, which looks at each invoke. As there, RESHAPE
        needs only the dimensions of its second input, not its values.
    """
    given = {-1, *subgraph.inputs}
    given.update(variables_of(subgraph))
    data = column_of(subgraph.tensors, "data")
    given.update(index for index, value in enumerate(data) if value is not None)
    found = []
    columns = (column_of(subgraph.operators, name) for name in ("inputs", "outputs"))
    for number, (inputs, outputs) in enumerate(zip(*columns, strict=True)):
        if not given.issuperset(inputs):
            operator = subgraph.operators[number]
            found += [
                (operator, index)
                for position, index in enumerate(inputs)
                if index not in given and not _needs_no_values(subgraph, operator, position)
            ]
        given.update(outputs)
    return found


def _needs_no_values(subgraph: SubgraphSpec, operator: OperatorSpec, position: int) -> bool:
    if operator.builtin_code != BuiltinOperator.RESHAPE or position != 1:
        return False
    return len(subgraph.tensors[operator.inputs[1]].shape) != 1


def missing_input_errors(unset: MissingInputs, tensors: Sequence[Tensor]) -> dict[int, NodeError]:
    """Return the error of each operator with a missing value, by operator index.

    Tensors without elements need no value, except strings and resources; on those the official
    interpreter crashes.
    """
    found: dict[int, NodeError] = {}
    for operator, index in unset:
        if not _is_empty(tensors[index]):
            found.setdefault(operator.index, _error(operator, index))
    return found


def empty_inputs(unset: MissingInputs, tensors: Sequence[Tensor]) -> Iterable[Tensor]:
    """Return the tensors among the missing inputs *unset* that have no elements."""
    return (tensors[index] for _, index in unset if _is_empty(tensors[index]))


def _is_empty(tensor: Tensor) -> bool:
    return tensor.type not in OBJECT_TYPES and 0 in tensor.shape


def _error(operator: OperatorSpec, tensor: int) -> NodeError:
    return NodeError(
        f"Node number {operator.index} ({operator.name}) failed to invoke: Input tensor {tensor} "
        "lacks data: it is no input of the graph, no constant and no earlier node's output",
        node_index=operator.index,
        op=operator.name,
    )


def require_consistent_operands(subgraph: SubgraphSpec) -> None:
    """Check that no node of *subgraph* writes a tensor twice, nor a tensor that it reads.

    Raises:
        NodeError: a node writes a tensor twice, or a tensor that it reads; custom operators may
            write a tensor that they read.
    """
    columns = (column_of(subgraph.operators, name) for name in ("inputs", "outputs"))
    for number, (inputs, outputs) in enumerate(zip(*columns, strict=True)):
        if len(outputs) == 1 and outputs[0] not in inputs:
            continue  # nearly all inputs: no other error is possible
        operator = subgraph.operators[number]
        written = [index for index in outputs if index >= 0]
        if len(set(written)) < len(written):
            raise NodeError(
                f"Node number {operator.index} ({operator.name}) has outputs "
                f"{list(outputs)}, expected different tensors",
                node_index=operator.index,
                op=operator.name,
            )
        both = set(inputs).intersection(outputs) - {-1}
        if both and not operator.is_custom:
            tensor = min(both)
            raise NodeError(
                f"Tensor {tensor} is both input {inputs.index(tensor)} and output "
                f"{outputs.index(tensor)} of node number {operator.index} ({operator.name})",
                node_index=operator.index,
                op=operator.name,
            )
