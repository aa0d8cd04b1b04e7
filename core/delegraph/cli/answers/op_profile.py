"""Prints the result of ``delegraph benchmark --op-profile``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delegraph.cli.answers.printing import heading, plural, print_table, size

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.profiling.op_profile import NodeTime, OpProfile, Section

_SLOWEST = 10
"""Number of rows of the table by time, as in ``benchmark_model``."""

_NODES = ("node type", "first ms", "avg ms", "%", "cdf %", "calls", "output", "name")
_TYPES = ("node type", "count", "ms a run", "%", "cdf %", "calls", "output")


def print_op_profile(out: Console, profile: OpProfile) -> None:
    """Print the time of each operator: initialization, then each section."""
    heading(out, "Profile: initialization")
    columns = ("stage", "ms", "memory after")
    stages = [
        (s.name, _ms(s.seconds), "" if s.memory is None else size(s.memory)) for s in profile.stages
    ]
    print_table(out, columns, stages, right=columns[1:])
    for section in profile.sections:
        _print_section(out, section)
    out.print()
    mean = profile.runs.mean
    saved = f"; {_ms(profile.saved)} ms saved by nodes that ran at the same time"
    out.print(
        f"{plural(profile.runs.count, 'profiled run')}, {_ms(mean)} ms on average, "
        f"{_ms(profile.outside)} ms of it outside of nodes" + saved * (profile.saved > 0)
    )
    for note in profile.notes:
        out.print(f"note: {note}")


def _print_section(out: Console, section: Section) -> None:
    heading(out, f"Profile: {section.title}, {_ms(section.seconds)} ms a run")
    if section.delegate is not None:
        out.print("  (in the times of its partitions, too)")
    out.print("  Run order", style="italic")
    _print_nodes(out, section, section.nodes)
    if len(section.nodes) > 1:
        out.print("  Top by time", style="italic")
        _print_nodes(out, section, section.by_time()[:_SLOWEST])
        out.print("  By type", style="italic")
        kinds = section.by_type()
        rows = [
            (
                kind.node_type,
                kind.count,
                _ms(kind.seconds),
                *_percent(shares),
                f"{kind.times_called:g}",
                _size(kind.output_bytes),
            )
            for kind, shares in zip(kinds, section.shares(kinds), strict=True)
        ]
        print_table(out, _TYPES, rows, right=_TYPES[1:], indent=4)


def _print_nodes(out: Console, section: Section, nodes: Iterable[NodeTime]) -> None:
    found = list(nodes)
    rows = [
        (
            node.node_type,
            _ms(node.calls.first),
            _ms(node.calls.mean),
            *_percent(shares),
            f"{node.times_called:g}",
            _size(node.output_bytes),
            node.name,
        )
        for node, shares in zip(found, section.shares(found), strict=True)
    ]
    less_important = (("first ms",), ("calls",), ("cdf %",), ("output",))
    print_table(out, _NODES, rows, right=_NODES[1:-1], optional=less_important, indent=4)


def _percent(shares: tuple[float, float]) -> tuple[str, str]:
    own, so_far = shares
    return f"{100 * own:.1f}", f"{100 * so_far:.1f}"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3f}"


def _size(count: int | None) -> str:
    return "" if count is None else size(count)
