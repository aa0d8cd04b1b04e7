"""Cuts a model into segments, one for each device.

The first segment gets the inputs of the model, and the last segment returns its outputs. A segment
reads outputs of any earlier segment by name, from the pipeline runner.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from delegraph.errors import ArgumentError
from delegraph.graph import SubgraphSpec
from delegraph.schema import pruned, tables
from delegraph_edgetpu.mapping import ModelMapping


@dataclass(frozen=True)
class Part:
    """A part of a model (a segment or all of it): node indices in execution order, and tensors.

    Attributes:
        before: nodes that run on the CPU before the mapped nodes.
        mapped: nodes that become the custom operator.
        after: nodes that run on the CPU after the custom operator.
        inputs: tensors that come from the caller or from earlier parts.
        outputs: tensors that go to the caller or to later parts.
    """

    before: tuple[int, ...]
    mapped: tuple[int, ...]
    after: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def nodes(self) -> tuple[int, ...]:
        """All node indices of the part, in execution order."""
        return (*self.before, *self.mapped, *self.after)


@dataclass(frozen=True)
class Boundary:
    """Inputs and outputs of a set of nodes: the tensors that the set shares with other nodes."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def boundary(subgraph: SubgraphSpec, nodes: Collection[int]) -> Boundary:
    """Return the sorted tensors that *nodes* of *subgraph* share with other nodes or the graph."""
    inside = set(nodes)
    made = {t for i in inside for t in subgraph.operators[i].outputs if t >= 0}
    read = {t for i in inside for t in subgraph.operators[i].inputs if t >= 0} - made
    needed = set(subgraph.outputs)
    for operator in subgraph.operators:
        if operator.index not in inside:
            needed.update(operator.inputs)
    computed = (t for t in read if subgraph.tensors[t].data is None)
    return Boundary(tuple(sorted(computed)), tuple(sorted(made & needed)))


def cut_out(record: tables.Model, inputs: Sequence[int], outputs: Sequence[int]) -> tables.Model:
    """Return *record* with only these inputs and outputs, without unused operators.

    Metadata and signatures, which describe the interface of the whole model, are left out.
    """
    (subgraph,) = record.subgraphs or ()
    cut = subgraph.replace(inputs=tuple(inputs), outputs=tuple(outputs))
    parts = {"metadata": None, "metadata_buffer": None, "signature_defs": None}
    return pruned(record.replace(subgraphs=(cut,), **parts))


def parts(
    subgraph: SubgraphSpec, mapping: ModelMapping, count: int, weights: Sequence[int]
) -> list[Part]:
    """Return the model as *count* parts; the mapped nodes are divided, in order.

    Nodes before the mapped nodes are in the first part, nodes after these in the last part.

    Args:
        subgraph: the model's only subgraph.
        mapping: mapping of the nodes.
        count: number of parts, from 1.
        weights: cost of each mapped node; the most expensive part gets as cheap as possible.

    Raises:
        ArgumentError: the model has fewer mapped nodes than parts.
    """
    if count == 1:
        return [
            Part(
                mapping.before,
                mapping.mapped,
                mapping.after,
                tuple(subgraph.inputs),
                tuple(subgraph.outputs),
            )
        ]
    if count > len(mapping.mapped):
        raise ArgumentError(
            f"{count} segments, expected 1 to {len(mapping.mapped)}: a segment needs at least one "
            f"operator that maps, and {len(mapping.mapped)} do"
        )
    slices = balanced(weights, count)
    return [
        _segment(subgraph, mapping, mapping.mapped[start:end], position, count)
        for position, (start, end) in enumerate(slices)
    ]


def _segment(
    subgraph: SubgraphSpec,
    mapping: ModelMapping,
    mapped: tuple[int, ...],
    position: int,
    count: int,
) -> Part:
    """Return the part at *position* of *count* parts, which has the nodes *mapped*.

    The first part also has the nodes before the mapped nodes, the last part the nodes after them.
    """
    first, last = position == 0, position == count - 1
    before = mapping.before if first else ()
    after = mapping.after if last else ()
    nodes = {*before, *mapped, *after}
    edge = boundary(subgraph, nodes)
    inputs = [i for i in edge.inputs if not subgraph.tensors[i].is_variable]
    outputs = tuple(subgraph.outputs) if last else edge.outputs
    if first:
        inputs = list(subgraph.inputs)
    elif last:  # outputs of the model that earlier parts computed pass through the last part
        made = {t for node in nodes for t in subgraph.operators[node].outputs}
        computed = {t for t in subgraph.outputs if subgraph.tensors[t].data is None}
        inputs = sorted({*inputs, *(computed - made)})
    return Part(before, mapped, after, tuple(inputs), outputs)


def balanced(weights: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Return start and end of *count* runs of *weights*; no run is empty.

    The largest sum of a run is as small as possible. This uses a recurrence: the best division of
    the first ``n`` weights into ``k`` runs contains the best division of the first ``m`` weights
    into ``k - 1`` runs, for some ``m``.

    >>> balanced([5, 1, 1, 1, 5], 3)
    [(0, 1), (1, 4), (4, 5)]
    """
    total = [0, *accumulate(weights)]
    size = len(weights)
    best = [float("inf") if n == 0 else float(total[n]) for n in range(size + 1)]
    cuts: list[list[int]] = []
    for k in range(2, count + 1):
        row, cut = [float("inf")] * (size + 1), [0] * (size + 1)
        for n in range(k, size + 1):
            options = ((max(best[m], total[n] - total[m]), m) for m in range(k - 1, n))
            row[n], cut[n] = min(options)
        best = row
        cuts.append(cut)
    ends = [size]
    for cut in reversed(cuts):
        ends.append(cut[ends[-1]])
    ends.append(0)
    return list(zip(ends[:0:-1], ends[-2::-1], strict=True))
