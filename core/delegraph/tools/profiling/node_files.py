"""Writes the node data of a recording: time, delegate and rejections of each node."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from delegraph.delegation.placement import Placement
from delegraph.tools.profiling.node_data import NodeData, OperatorId
from delegraph.tools.profiling.op_profile import OpProfile, profile_of
from delegraph.tools.profiling.recording import Recording

LATENCY, DELEGATE, REJECTION = "latency_us.json", "delegate.json", "rejection.json"
"""Names of the files in a folder of node data."""


def write_node_files(folder: str | os.PathLike[str], recording: Recording) -> list[Path]:
    """Write the node data of a recording into a folder, which is created; return the paths.

    Without a time of any node, there is no file of times.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    placement = recording.placement
    data = {
        LATENCY: latency_data(profile_of(recording), recording),
        DELEGATE: delegate_data(placement),
        REJECTION: rejection_data(placement),
    }
    if not data[LATENCY].values:
        del data[LATENCY]
    for name, values in data.items():
        values.write(path / name, recording.model)
    return [path / name for name in data]


def latency_data(profile: OpProfile, recording: Recording) -> NodeData:
    """Return the microseconds per run of each node.

    If nodes are computed together, the first node has their time, and the others have text that
    refers to it. If a delegate reports only the time of a whole partition, its nodes have text that
    says so.
    """
    values: dict[OperatorId, float | str] = {}
    partitions: dict[int, float] = {}
    for node in (node for section in profile.sections for node in section.nodes):
        first, *fused = node.model_nodes or (None,)
        if first != node.node_index:
            if node.partition is not None:
                partitions[node.partition] = node.seconds
            continue
        key = node.subgraph, node.node_index
        timed = values.get(key, 0.0)
        before = timed if isinstance(timed, float) else 0.0
        values[key] = round(1e6 * node.seconds + before, 3)  # whole nanoseconds
        for index in fused:
            values.setdefault((node.subgraph, index), f"with node {node.node_index}")
    return NodeData("latency (us)", {**_untold(partitions, recording, values), **values})


def _untold(
    partitions: Mapping[int, float], recording: Recording, known: Mapping[OperatorId, object]
) -> dict[OperatorId, float | str]:
    """Return a text with the partition's time for each node in a partition without times of nodes.

    *partitions* has the seconds by partition; *known* has the nodes with a known time.
    """
    found: dict[OperatorId, float | str] = {}
    for number, seconds in partitions.items():
        partition = recording.placement.partitions[number]
        nodes = [(partition.subgraph, index) for index in partition.nodes]
        if not any(node in known for node in nodes):
            text = f"partition {number}: {1e6 * seconds:.1f} us together"
            found |= dict.fromkeys(nodes, text)
    return found


def delegate_data(placement: Placement) -> NodeData:
    """Return the name of the delegate or host that computes each node in *placement*."""
    return NodeData(
        "delegate",
        {
            (node.subgraph, node.index): "nothing"
            if node.is_unresolved
            else node.delegate or placement.host
            for node in placement.nodes
        },
        colors={placement.host: "#ffffff"},
    )


def rejection_data(placement: Placement) -> NodeData:
    """Return the constraints that each node without a delegate violates, by delegate, as text."""
    return NodeData(
        "rejection",
        {
            (node.subgraph, node.index): "; ".join(reasons)
            for node in placement.nodes
            if node.delegate is None
            and (reasons := [f"{by}: {why}" for by, why in node.refusals(placement.delegates)])
        },
    )
