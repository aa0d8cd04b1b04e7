"""Nodes and tensor sizes that an official interpreter reports, for the placement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from delegraph.graph.model import SubgraphSpec
from delegraph.native.abi import DELEGATE_CODE
from delegraph.native.litert.placement import RUNTIME_DELEGATE, RuntimePartition
from delegraph.schema.enums import BuiltinOperator


class InterpreterNodes:
    """Partitions and sizes in the first subgraph of an official interpreter; see ``RuntimeNodes``.

    The interpreter reports nothing about other subgraphs.
    """

    def __init__(self, official: Any) -> None:
        self._official = official

    def partitions(
        self, spec: SubgraphSpec, known: Sequence[RuntimePartition]
    ) -> Iterator[RuntimePartition]:
        """Yield the delegate nodes of the runtime, with the operators that they must compute.

        The runtime reports a delegate node's inputs and outputs, from which the operators follow.

        Args:
            spec: the subgraph; only the first has results.
            known: the partitions of Delegraph's delegates, which are left out.
        """
        if spec.index != 0:
            return
        ours = {partition.node_index for partition in known}
        for details in self._official._get_ops_details():
            name, index = details["op_name"], int(details["index"])
            inputs = tuple(int(i) for i in details["inputs"])
            outputs = tuple(int(i) for i in details["outputs"])
            is_model_operator = any(
                o.outputs == outputs and o.inputs == inputs and o.name == name
                for o in spec.operators
            )
            if index in ours or is_model_operator or not _is_delegate(name):
                continue
            nodes = nodes_between(spec, known, inputs, outputs)
            yield RuntimePartition(RUNTIME_DELEGATE, index, nodes, inputs, outputs)

    def sizes(self, spec: SubgraphSpec) -> dict[int, int]:
        """Return the present number of bytes of each tensor of the subgraph *spec*, by index."""
        details = self._official.get_tensor_details() if spec.index == 0 else []
        return {
            int(d["index"]): math.prod(map(int, d["shape"])) * np.dtype(d["dtype"]).itemsize
            for d in details
        }

    def final(self, spec: SubgraphSpec) -> None:
        """Return None, because the interpreter does not report its execution plan."""


def nodes_between(
    spec: SubgraphSpec,
    known: Sequence[RuntimePartition],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> tuple[int, ...]:
    """Return the operators that a delegate must compute for *outputs*, from *inputs*.

    Operators of the partitions *known*, of Python delegates, are excluded.
    """
    taken = {node for partition in known for node in partition.nodes}
    maker = {i: o for o in spec.operators if o.index not in taken for i in o.outputs}
    nodes: set[int] = set()
    waiting = [i for i in outputs if i >= 0]
    while waiting:
        operator = maker.get(waiting.pop())
        if operator is not None and operator.index not in nodes:
            nodes.add(operator.index)
            waiting += [i for i in operator.inputs if i >= 0 and i not in inputs]
    return tuple(sorted(nodes))


def _is_delegate(op_name: str) -> bool:
    return op_name == BuiltinOperator(DELEGATE_CODE).name or "Delegate" in op_name
