"""How long operators take, as the page gets it: of each node its time a run and its share."""

from __future__ import annotations

from typing import Any

from delegraph.tools.profiling.op_profile import NodeTime, OpProfile, Section


def profile_json(profile: OpProfile) -> dict[str, Any]:
    """Return the sections in the profile's order, their nodes the slowest first."""
    return {
        "runs": profile.runs.count,
        "mean": profile.runs.mean,
        "outside": profile.outside,
        "notes": list(profile.notes),
        "sections": list(map(_section_json, profile.sections)),
    }


def _section_json(section: Section) -> dict[str, Any]:
    nodes, kinds = section.by_time(), section.by_type()
    return {
        "title": section.title,
        "is_inside": section.delegate is not None,
        "seconds": section.seconds,
        "nodes": [
            _node_json(node) | {"share": share}
            for node, (share, _) in zip(nodes, section.shares(nodes), strict=True)
        ],
        "types": [
            {"type": k.node_type, "count": k.count, "seconds": k.seconds, "share": share}
            for k, (share, _) in zip(kinds, section.shares(kinds), strict=True)
        ],
    }


def _node_json(node: NodeTime) -> dict[str, Any]:
    return {
        "type": node.node_type,
        "subgraph": node.subgraph,
        "nodes": list(node.model_nodes),
        "delegate": node.delegate,
        "seconds": node.seconds,
        "times": node.times_called,
    }
