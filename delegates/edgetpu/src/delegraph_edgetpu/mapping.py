"""Decides which operators become the custom operator, with reasons for the others.

To map an operator means to run it on the Edge TPU. Like the real compiler, this compiler maps a
single part of the model. It takes operators in execution order until an operator cannot map.
Operators that depend on that operator stay on the CPU, and so do operators before the part, such as
a ``QUANTIZE`` of floating-point inputs. This part is the first subset that partitioning for a
delegate yields, so the core's partitioner finds it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import ClassVar

from delegraph.delegation import GraphInfo, NodeInfo, partition_graph_into_independent_node_subsets
from delegraph.errors import ArgumentError
from delegraph.graph import SubgraphSpec
from delegraph.json_records import JsonRecord
from delegraph_edgetpu.call import Call
from delegraph_edgetpu.operator_rules import broken_rules
from delegraph_edgetpu.reasons import AT_END, NOTHING, Reason, Status


@dataclass(frozen=True)
class OperatorMapping(JsonRecord):
    """Mapping of one operator: to the Edge TPU, or to the CPU with reasons.

    Attributes:
        index: node index of the operator.
        name: name of the operator, such as ``CONV_2D``, or its custom code.
        reasons: reasons why the operator stays on the CPU; empty if it maps.
    """

    json_properties: ClassVar = {"mapped": "is_mapped", "status": "status"}

    index: int = field(metadata={"json_key": "node"})
    name: str = field(metadata={"json_key": "operator"})
    reasons: tuple[Reason, ...] = ()

    @property
    def is_mapped(self) -> bool:
        """Whether the operator runs on the Edge TPU."""
        return not self.reasons

    @property
    def status(self) -> Status:
        """Status that Google's Edge TPU compiler would print for the operator in its log."""
        return self.reasons[0].status if self.reasons else Status.MAPPED


@dataclass(frozen=True)
class ModelMapping:
    """Mapping of a model's operators; node indices are in execution order.

    Attributes:
        operators: mapping of each operator.
        before: nodes that run before the mapped part.
        mapped: nodes of the mapped part; empty if no node maps.
        after: nodes that run after the mapped part.
    """

    operators: tuple[OperatorMapping, ...]
    before: tuple[int, ...]
    mapped: tuple[int, ...]
    after: tuple[int, ...]


def map_subgraph(
    subgraph: SubgraphSpec,
    runtime: int,
    ends: Collection[str] = (),
    without: Collection[int] = (),
) -> ModelMapping:
    """Return the mapping of a subgraph's operators.

    Args:
        subgraph: the model's only subgraph.
        runtime: oldest runtime version that must be able to run the compiled model.
        ends: names of tensors at which the mapped part must end.
        without: nodes that a search leaves on the CPU.

    Raises:
        ArgumentError: no operator computes a tensor named in *ends*.
    """
    reasons = {
        operator.index: broken_rules(Call(operator, subgraph.tensors), runtime)
        for operator in subgraph.operators
    }
    wanted = _needed_for(subgraph, ends)
    for index in reasons:
        if index in without:
            reasons[index] += (_SEARCHED,)
        elif wanted is not None and index not in wanted:
            reasons[index] += (_behind_ends(ends),)
    before, mapped, after = _divided(subgraph, [i for i, found in reasons.items() if not found])
    for index in _at_the_end(subgraph, reasons, after):
        reasons[index] = tuple(map(_without_end, reasons[index]))
    _explain_rest(subgraph, reasons, set(mapped), set(before))
    operators = tuple(
        OperatorMapping(o.index, o.name, reasons[o.index]) for o in subgraph.operators
    )
    return ModelMapping(operators, before, mapped, after)


_SEARCHED = Reason(
    "search",
    "the part ends before it",
    "the search takes the longest part that can be compiled",
    "repair the operators after the part, or compile without --search to see the error",
    Status.LIMIT,
)


def _behind_ends(ends: Collection[str]) -> Reason:
    names = ", ".join(map(repr, sorted(ends)))
    return Reason(
        "intermediate-tensors",
        "it is not needed for the intermediate tensors",
        f"the mapped part ends at {names}",
        "name a tensor after it, or none",
        Status.BEHIND,
    )


def _needed_for(subgraph: SubgraphSpec, ends: Collection[str]) -> set[int] | None:
    """Return the nodes on which the tensors named *ends* depend; None if *ends* is empty.

    Nodes and tensors are those of *subgraph*.
    """
    if not ends:
        return None
    producer = _producers(subgraph)
    names = {subgraph.tensors[index].name: index for index in producer}
    missing = sorted(set(ends) - names.keys())
    if missing:
        closest = ", ".join(map(repr, get_close_matches(missing[0], names, 5, 0)))
        raise ArgumentError(f"no operator makes a tensor {missing[0]!r}; the closest: {closest}")
    needed: set[int] = set()
    waiting = [producer[names[name]] for name in sorted(ends)]
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            inputs = subgraph.operators[node].inputs
            waiting += [producer[index] for index in inputs if index in producer]
    return needed


def _producers(subgraph: SubgraphSpec) -> dict[int, int]:
    """Return, by tensor index, the index of the node of *subgraph* that computes the tensor."""
    return {t: o.index for o in subgraph.operators for t in o.outputs if t >= 0}


_Nodes = tuple[int, ...]


def _divided(subgraph: SubgraphSpec, able: Sequence[int]) -> tuple[_Nodes, _Nodes, _Nodes]:
    """Return three groups of nodes: before the mapped part, in it, and after it.

    *able* are the nodes that break no rule.
    """
    graph = GraphInfo(
        nodes=[NodeInfo(o.inputs, o.outputs) for o in subgraph.operators],
        execution_plan=range(len(subgraph.operators)),
        num_total_nodes=len(subgraph.operators),
        inputs=subgraph.inputs,
        outputs=subgraph.outputs,
        variables=[t.index for t in subgraph.tensors if t.is_variable],
    )
    subsets = partition_graph_into_independent_node_subsets(graph, able, greedily=True)
    for position, subset in enumerate(subsets):
        if subset.type == "kTfPartition":
            before = [node for earlier in subsets[:position] for node in earlier.nodes]
            rest = {*range(len(subgraph.operators))} - {*before, *subset.nodes}
            return tuple(sorted(before)), tuple(sorted(subset.nodes)), tuple(sorted(rest))
    return tuple(range(len(subgraph.operators))), (), ()


def _explain_rest(
    subgraph: SubgraphSpec,
    reasons: dict[int, tuple[Reason, ...]],
    mapped: set[int],
    before: set[int],
) -> None:
    """Add reasons for the nodes that break no rule, but need results of a node that does.

    A reason names the first node that breaks a rule. Nodes are given by their indices in
    *subgraph*.

    The new reasons are added to *reasons*. Nodes *before* the *mapped* part run on the CPU.
    """
    producer = _producers(subgraph)
    blocker: dict[int, int] = {}
    for operator in subgraph.operators:
        if operator.index in mapped or operator.index in before:
            continue
        sources = (producer.get(index, -1) for index in operator.inputs)
        cause = next((blocker[source] for source in sources if source in blocker), None)
        if reasons[operator.index]:
            blocker[operator.index] = operator.index if cause is None else cause
        elif cause is not None:
            blocker[operator.index] = cause
            reasons[operator.index] = (_behind(cause, subgraph.operators[cause].name),)


def _at_the_end(
    subgraph: SubgraphSpec, reasons: Mapping[int, Sequence[Reason]], after: _Nodes
) -> list[int]:
    """Return the nodes that break rules, and on which no node depends that could map.

    *after* are the nodes that run after the mapped part.
    """
    producer = _producers(subgraph)
    obstacles: set[int] = set()
    for index in sorted(after, reverse=True):
        if not reasons[index] or index in obstacles:
            inputs = subgraph.operators[index].inputs
            obstacles |= {producer[tensor] for tensor in inputs if tensor in producer}
    return [index for index in after if reasons[index] and index not in obstacles]


def _without_end(reason: Reason) -> Reason:
    """Return the reason of an operator at the end of the model, without the advice to move it."""
    if reason.rule == "operator":
        return replace(reason, remedy=NOTHING)
    return replace(reason, remedy=reason.remedy.replace(AT_END, "leave it: it ends the model"))


def _behind(node: int, name: str) -> Reason:
    return Reason(
        "behind",
        f"it needs the results of node {node} ({name})",
        "which does not map, and only one part is compiled",
        f"make node {node} ({name}) map, which is the first in the way",
        Status.BEHIND,
    )
