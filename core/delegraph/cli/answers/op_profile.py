"""Prints the result of ``delegraph benchmark --op-profile``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from delegraph.cli.answers.printing import heading, print_omitted, print_table, size
from delegraph.quantities import duration, percent, plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.profiling.op_profile import OpProfile
    from delegraph.tools.profiling.sections import NodeTime, Section

_SLOWED = 1.1
"""Ratio of profiled to plain run time above which a note about the profile's own time is
printed."""

_SLOWEST = 10
"""Number of rows of the table by time, as in ``benchmark_model``."""

_FEW = 5
"""Largest number of nodes for which the table by time is omitted."""

_FUSED = re.compile(r"(?<=[^\[, ]);[^,\]]*")
_PLACE = re.compile(r":\d+$")
_REPEATED = re.compile(r"(?<![^\[ ;/])([^/\[ ;]+/)\1+")

_TIMES = ("median", "mean", "min", "std", "first")
_NODES = ("node type", *_TIMES, "share", "so far", "calls", "output", "name")
_TYPES = ("node type", "count", "a run", "share", "so far", "calls", "output")
_LESS_IMPORTANT = tuple((n,) for n in ("first", "output", "calls", "so far", "std", "min", "mean"))


def print_op_profile(out: Console, profile: OpProfile, unprofiled: float) -> None:
    """Print the time of each operator: initialization, then each section.

    *unprofiled* is the median of runs that are not profiled, in seconds.
    """
    heading(out, "Profile: initialization")
    columns = ("stage", "time", "memory after")
    stages = [(s.name, duration(s.seconds), size(s.memory)) for s in profile.stages]
    print_table(out, columns, stages, right=columns[1:])
    omitted: list[str] = []
    for section in profile.sections:
        omitted += _print_section(out, profile, section)
    print_omitted(out, omitted)
    out.print()
    median = profile.runs.median
    outside = f", {duration(profile.outside)} of it outside of nodes"
    saved = f"; {duration(profile.saved)} saved by nodes that ran at the same time"
    out.print(
        f"{plural(profile.runs.count, 'profiled run')}, median {duration(median)}"
        + (outside if profile.sections else "; no node tells its time")
        + saved * (profile.saved > 0)
    )
    if median > _SLOWED * unprofiled:
        out.print(
            f"note: timing each node takes time, too: a run without it took {duration(unprofiled)}"
        )
    for note in profile.notes:
        out.print(f"note: {note}")
    for caution in profile.cautions:
        out.print(f"caution: {caution}")


def _print_section(out: Console, profile: OpProfile, section: Section) -> list[str]:
    """Print the times of a section; return the headings of columns without room."""
    heading(out, f"Profile: {section.title}, {duration(section.seconds)} a run")
    if section.delegate is not None:
        between = profile.between_rows(section)
        more = f"; they take {duration(between)} more, for calls and for timing each row"
        out.print(f"  (in the times of its partitions, too{more * (between > 0)})")
    omitted = _print_nodes(out, section)
    if len(section.nodes) > 1:
        out.print("  By type", style="italic")
        kinds = section.by_type()
        rows = [
            (
                kind.node_type,
                kind.count,
                duration(kind.seconds),
                *map(percent, shares),
                f"{kind.times_called:g}",
                size(kind.output_bytes),
            )
            for kind, shares in zip(kinds, section.shares(kinds), strict=True)
        ]
        omitted += print_table(
            out, _TYPES, rows, right=_TYPES[1:], optional=_LESS_IMPORTANT, indent=4
        )
    return omitted


def _print_nodes(out: Console, section: Section) -> list[str]:
    """Print the nodes in run order and, if there are many, the slowest ones first.

    The result has the headings of columns without room.
    """
    names = node_names([node.name for node in section.nodes])
    shown = {node.run_order: name for node, name in zip(section.nodes, names, strict=True)}
    parts: dict[str, Sequence[NodeTime]] = {"  Run order": section.nodes}
    if len(section.nodes) > _FEW:
        parts["  Top by time"] = section.by_time()[:_SLOWEST]
    rows: list[tuple[object, ...]] = []
    places = {}
    for title, nodes in parts.items():
        places[title] = slice(len(rows), len(rows) + len(nodes))
        rows += [
            (
                node.node_type,
                *(duration(getattr(node.calls, figure)) for figure in _TIMES),
                *map(percent, shares),
                f"{node.times_called:g}",
                size(node.output_bytes),
                shown[node.run_order],
            )
            for node, shares in zip(nodes, section.shares(nodes), strict=True)
        ]
    return print_table(
        out, _NODES, rows, right=_NODES[1:-1], optional=_LESS_IMPORTANT, parts=places, indent=4
    )


def node_names(names: Sequence[str]) -> list[str]:
    """Return shorter names of nodes: the first of fused names, and repeated folders once.

    Names stay whole whose first part is that of several nodes.

    >>> node_names(["[net/net/conv/Relu;net/net/conv/bias]:0", "[net/add;x]:1", "[net/add;y]:2"])
    ['[net/conv/Relu]:0', '[net/add;x]:1', '[net/add;y]:2']
    """
    first = [_FUSED.sub("", name) for name in names]
    count = Counter(_PLACE.sub("", name) for name in first)
    return [
        _REPEATED.sub(r"\1", short if count[_PLACE.sub("", short)] == 1 else name)
        for short, name in zip(first, names, strict=True)
    ]
