"""Matches each node of an official interpreter with an operator of the model file.

The runtime keeps an operator's options in structs that differ between versions, so options are read
from the file. Node indices may differ from the operators' indices in the file, because the runtime
silently omits operators that it finds inconsistent. So nodes and operators are matched in order, by
operator type and tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from delegraph.errors import DelegateError
from delegraph.graph.model import OperatorSpec, SubgraphSpec
from delegraph.schema.enums import BuiltinOperator


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Operator and tensors of a node, as the runtime reports them.

    Attributes:
        index: index of the node in the runtime.
        code: builtin operator code.
        custom_name: name of a custom operator; empty for a builtin operator.
        inputs: tensor indices.
        outputs: tensor indices.
    """

    index: int
    code: int
    custom_name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def __str__(self) -> str:
        known = self.code in BuiltinOperator._value2member_map_
        name = self.custom_name or (BuiltinOperator(self.code).name if known else f"{self.code}")
        return f"node {self.index} is {name} of {list(self.inputs)} to {list(self.outputs)}"


def align(nodes: Iterable[NodeIdentity], subgraph: SubgraphSpec) -> dict[int, OperatorSpec]:
    """Match the runtime's nodes with the model file; map each node index to its operator.

    >>> from delegraph.graph.model import OperatorSpec, SubgraphSpec
    >>> add = BuiltinOperator.ADD
    >>> file = [OperatorSpec(i, "ADD", add, 1, (i,), (i + 1,)) for i in range(3)]
    >>> spec = SubgraphSpec(0, "", (), tuple(file), (0,), (3,))
    >>> nodes = [NodeIdentity(0, 0, "", (1,), (2,)), NodeIdentity(1, 0, "", (2,), (3,))]
    >>> found = align(nodes, spec)
    >>> {node: operator.index for node, operator in found.items()}
    {0: 1, 1: 2}

    Args:
        nodes: nodes that the runtime reports, in its order, without delegate nodes.
        subgraph: the subgraph as the file describes it.

    Raises:
        DelegateError: a node is no operator of the subgraph, or the order differs.
    """
    half = _float16_constants(subgraph)
    left = iter(subgraph.operators)
    found = {}
    for node in nodes:
        operator = next((o for o in left if _is(o, node, half)), None)
        if operator is None:
            raise DelegateError(
                f"the runtime's {node}; subgraph {subgraph.index} of the model has no such "
                "operator there. Is it the model that the interpreter runs?"
            )
        found[node.index] = operator
    return found


def require_same_types(found: Sequence[int], expected: Sequence[int], subgraph: int) -> None:
    """Check that *found*, the runtime's tensor types as C numbers, begins with *expected*.

    *expected* are those of the model, and *subgraph* is the subgraph's index, for the error.

    Raises:
        DelegateError: the interpreter runs another model.
    """
    if tuple(found[: len(expected)]) != tuple(expected):
        raise DelegateError(
            f"the tensors of the runtime's subgraph {subgraph} have other types than the model's. "
            "Is it the model that the interpreter runs?"
        )


def _is(operator: OperatorSpec, node: NodeIdentity, half: dict[int, int]) -> bool:
    if operator.builtin_code != node.code or operator.outputs != node.outputs:
        return False
    if operator.is_custom and operator.name != node.custom_name:
        return False
    return operator.inputs == node.inputs or [half.get(i, i) for i in operator.inputs] == [
        half.get(i, i) for i in node.inputs
    ]


def _float16_constants(subgraph: SubgraphSpec) -> dict[int, int]:
    """Return the constants of *subgraph* that DEQUANTIZE reads, by the index of its output.

    Nodes may read these constants directly.
    """
    return {
        operator.outputs[0]: operator.inputs[0]
        for operator in subgraph.operators
        if operator.builtin_code == BuiltinOperator.DEQUANTIZE
        and operator.outputs  # either may be absent from a file
        and min(operator.inputs, default=-1) >= 0
        and subgraph.tensors[operator.inputs[0]].data is not None
    }
