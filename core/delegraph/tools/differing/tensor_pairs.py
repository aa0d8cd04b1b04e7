"""Pairs of tensors of two set-ups, and the tensors that a set-up does not write."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from delegraph.graph.model import SubgraphSpec
from delegraph.native.litert.placement import RUNTIME_DELEGATE
from delegraph.quantities import plural
from delegraph.tools.differing.matching import matched_names
from delegraph.tools.differing.watched_side import Watched


def twins(test: Watched, right: Watched, order: Sequence[int]) -> dict[int, int]:
    """Match tensors of two set-ups: map those of *test* to those of *right*, the reference.

    Args:
        test: the test.
        right: the reference.
        order: for each input of the reference, the position of the test's input.
    """
    if are_of_same_file(test, right) and test.spec.index == right.spec.index:
        return {tensor.index: tensor.index for tensor in test.spec.tensors}
    named = [[{"name": t.name} for t in side.spec.tensors] for side in (test, right)]
    fed = {int(test.inputs[i]["index"]): int(right.inputs[j]["index"]) for j, i in enumerate(order)}
    found = matched_names(*named) | fed
    placed = _in_same_places(test.spec, right.spec, found)
    if placed:
        test.notes.append(
            f"{plural(len(placed), 'tensor')} matched by the position of the node, not by name: "
            "both models have as many nodes, with results of the same shapes"
        )
    return found | placed


def _in_same_places(
    spec: SubgraphSpec, other: SubgraphSpec, found: Mapping[int, int]
) -> dict[int, int]:
    """Map outputs of nodes that *found* leaves out to those of the node at the same position.

    The result is empty unless both subgraphs have as many nodes, with results of the same shapes.
    """
    if _shapes_of_results(spec) != _shapes_of_results(other):
        return {}
    taken = {*found.values()}
    return {
        i: j
        for one, two in zip(spec.operators, other.operators, strict=True)
        for i, j in zip(one.outputs, two.outputs, strict=True)
        if i >= 0 and j >= 0 and i not in found and j not in taken
    }


def _shapes_of_results(spec: SubgraphSpec) -> list[list[tuple[int, ...] | None]]:
    """Shapes of the outputs of each node; None for outputs that the node does not compute."""
    tensors = spec.tensors
    return [[tensors[i].shape if i >= 0 else None for i in o.outputs] for o in spec.operators]


def are_of_same_file(test: Watched, right: Watched) -> bool:
    """Whether both set-ups run the same file."""
    return os.path.realpath(test.setup.model) == os.path.realpath(right.setup.model)


def share_kernels(test: Watched, right: Watched) -> bool:
    """Whether both set-ups run the same file, and nodes without a delegate by the same kernels."""
    a, b = test.setup, right.setup
    is_same_host = (a.runtime, a.numerics) == (b.runtime, b.numerics)
    is_host_alone = not right.partitions(right.placement)
    return are_of_same_file(test, right) and is_same_host and is_host_alone


def folded_tensors(side: Watched) -> dict[int, int]:
    """Map each constant that XNNPACK folds and never writes to the node that converts it.

    Other runtimes have none. If these constants are made readable, they hold zeros.

    Source:
        tflite/delegates/xnnpack/xnnpack_delegate.cc: static_unpack_nodes_.
    """
    if all(p.delegate != RUNTIME_DELEGATE for p in side.partitions(side.placement)):
        return {}
    here = side.spec.index
    nodes = [n.index for n in side.placement.nodes if n.is_constant and n.subgraph == here]
    return {i: node for node in nodes for i in side.spec.operators[node].outputs}
