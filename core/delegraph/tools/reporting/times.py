"""Times of a model and of its operators, as data for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from delegraph.tools.benchmarking.result import BenchmarkResult
from delegraph.tools.profiling.op_profile import OpProfile
from delegraph.tools.profiling.sections import NodeTime, Section

MOST_DRAWN = 2000
"""Largest number of runs that are drawn, because browsers draw 100,000 points too slowly."""


def benchmark_json(result: BenchmarkResult) -> dict[str, Any]:
    """Return *result* as JSON data, with the samples to draw as ``[run, seconds]``."""
    told = result.to_json()
    del told["samples"]
    return told | {"drawn_runs": _drawn(result.runs)}


def _drawn(runs: Sequence[float]) -> list[list[float]]:
    """Return all runs; if there are too many, the fastest and the slowest of each group."""
    stretches: Any = np.arange(len(runs))[:, None]
    if len(runs) > MOST_DRAWN:
        stretches = np.array_split(np.arange(len(runs)), MOST_DRAWN // 2)
    times = np.asarray(runs)
    ends = {int(s[end(times[s])]) for s in stretches for end in (np.argmin, np.argmax)}
    return [[run, runs[run]] for run in sorted(ends)]


def profile_json(profile: OpProfile) -> dict[str, Any]:
    """Return the sections for JSON, in the profile's order, with the slowest nodes first.

    Each node has its time per run, by the median, and its share of the section's time.
    """
    return {
        "runs": profile.runs.count,
        "median": profile.runs.median,
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
