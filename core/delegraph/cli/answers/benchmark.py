"""Prints the result of ``delegraph benchmark``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph.cli.answers.printing import heading, plural, print_table, size

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.benchmarking.result import BenchmarkResult
    from delegraph.tools.latency import Latency


def print_answer(out: Console, result: BenchmarkResult) -> None:
    """Print the run times and memory of a model."""
    out.print(f"{result.name or result.setup['model']}")
    out.print(f"  {result.placement}")
    heading(out, "Stages")
    columns = ("stage", "time", "memory after", "peak")
    rows = [(s.name, duration(s.seconds), _size(s.memory), _size(s.peak)) for s in result.stages]
    print_table(out, columns, rows, right=columns[1:])
    first = result.first_inference_seconds
    told = "" if first is None else f", first inference {duration(first)}"
    out.print()
    out.print(f"init {duration(result.init_seconds)}{told}")
    _print_latencies(out, result)
    for caution in result.cautions:
        out.print(f"caution: {caution}")


def _print_latencies(out: Console, result: BenchmarkResult) -> None:
    """Print the figures one per line, since one row would need 110 columns."""
    named = (("warm-up", result.warmup_latency), ("inference", result.latency))
    columns = {name: _figures(latency) for name, latency in named if latency is not None}
    if not columns:
        return
    heading(out, "Times")
    figures = next(iter(columns.values()))
    rows = [(figure, *(column[figure] for column in columns.values())) for figure in figures]
    print_table(out, ("", *columns), rows, right=tuple(columns))
    rate = result.inferences_per_second
    if rate is not None:
        out.print()
        out.print(f"{plural(len(result.runs), 'run')}, {_rate(rate)} inferences a second")


def _figures(latency: Latency) -> dict[str, str]:
    """Return the figures as text, by name."""
    shares = latency.percentiles
    times = {
        "first": latency.first,
        "mean": latency.mean,
        "std": latency.std,
        "min": latency.min,
        "p5": shares[5],
        "median": latency.median,
        "p90": shares[90],
        "p95": shares[95],
        "p99": shares[99],
        "max": latency.max,
    }
    return {"runs": str(latency.count)} | {name: duration(time) for name, time in times.items()}


def duration(seconds: float) -> str:
    """Format a number of seconds with a suitable unit.

    >>> duration(0.0000123), duration(0.0123), duration(12.3)
    ('12.3 us', '12.3 ms', '12.3 s')
    """
    for unit, factor in (("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.4g} s"


def _rate(value: float) -> str:
    """Format a number per second.

    >>> _rate(0.12345), _rate(297.25), _rate(400371.2)
    ('0.1235', '297.2', '400,371')
    """
    return f"{value:.4g}" if value < 1000 else f"{value:,.0f}"


def _size(count: int | None) -> str:
    return "" if count is None else size(count)
