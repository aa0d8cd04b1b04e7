"""Finds node inputs that never get a value, as in damaged models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from delegraph.errors import NodeError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.graph.model import OperatorSpec, SubgraphSpec
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import BuiltinOperator

MissingInputs = Sequence[tuple[OperatorSpec, int]]
"""Pairs of an operator and a tensor that it reads and that never gets a value, in plan order."""


def missing_inputs(subgraph: SubgraphSpec) -> MissingInputs:
    """Return the node inputs that no graph input, constant, variable or earlier node provides.

    In linear time.

    Source:
        Subgraph::InvokeImpl, tflite/core/subgraph.cc, which looks at each invoke. As there, RESHAPE
        needs only the dimensions of its second input, not its values.
    """
    given = {-1, *subgraph.inputs}
    given.update(t.index for t in subgraph.tensors if t.data is not None or t.is_variable)
    found = []
    for operator in subgraph.operators:
        if not given.issuperset(operator.inputs):
            found += [
                (operator, index)
                for position, index in enumerate(operator.inputs)
                if index not in given and not _needs_no_values(subgraph, operator, position)
            ]
        given.update(operator.outputs)
    return found


def _needs_no_values(subgraph: SubgraphSpec, operator: OperatorSpec, position: int) -> bool:
    if operator.builtin_code != BuiltinOperator.RESHAPE or position != 1:
        return False
    return len(subgraph.tensors[operator.inputs[1]].shape) != 1


def missing_input_errors(unset: MissingInputs, tensors: Sequence[Tensor]) -> dict[int, NodeError]:
    """Return the error of each operator with a missing value, by operator index.

    Tensors without elements count as set, except strings and resources, on which the official
    interpreter crashes.

    Args:
        unset: the missing inputs of the subgraph.
        tensors: tensors of the subgraph, with their present shapes.
    """
    found: dict[int, NodeError] = {}
    for operator, index in unset:
        if not _is_empty(tensors[index]):
            found.setdefault(operator.index, _error(operator, index))
    return found


def empty_inputs(unset: MissingInputs, tensors: Sequence[Tensor]) -> Iterable[Tensor]:
    """Return the tensors among the missing inputs that have no elements."""
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
