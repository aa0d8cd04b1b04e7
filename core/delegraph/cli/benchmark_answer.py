"""How ``delegraph benchmark`` prints what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph.cli.printing import heading, plural, print_table, size

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.benchmarking.result import BenchmarkResult
    from delegraph.tools.latency import Latency


def print_answer(out: Console, result: BenchmarkResult) -> None:
    """Print how long a model takes, and what memory."""
    out.print(f"{result.name or result.setup['model']}")
    out.print(f"  {result.placement}")
    heading(out, "Stages")
    columns = ("stage", "time", "memory after", "peak")
    rows = [(s.name, duration(s.seconds), _size(s.memory), _size(s.peak)) for s in result.stages]
    print_table(out, columns, rows, right=columns[1:])
    if result.warmup:
        out.print()
        out.print(
            f"init {duration(result.init_seconds)}, first inference {duration(result.warmup[0])}"
        )
    _print_latencies(out, result)
    for caution in result.cautions:
        out.print(f"caution: {caution}")


def _print_latencies(out: Console, result: BenchmarkResult) -> None:
    rows = [
        _row(name, latency)
        for name, latency in (("warm-up", result.warmup_latency), ("inference", result.latency))
        if latency is not None
    ]
    if not rows:
        return
    heading(out, "Times")
    print_table(out, _COLUMNS, rows, right=_COLUMNS[1:])
    rate = result.inferences_per_second
    if rate is not None:
        out.print()
        out.print(f"{plural(len(result.runs), 'run')}, {rate:.4g} inferences a second")


_COLUMNS = ("", "count", "first", "min", "mean", "std", "p5", "median", "p90", "p95", "p99", "max")


def _row(name: str, latency: Latency) -> tuple[str, ...]:
    shares = latency.percentiles
    times = (
        latency.first,
        latency.min,
        latency.mean,
        latency.std,
        shares[5],
        latency.median,
        shares[90],
        shares[95],
        shares[99],
        latency.max,
    )
    return (name, str(latency.count), *map(duration, times))


def duration(seconds: float) -> str:
    """Return a time for people.

    >>> duration(0.0000123), duration(0.0123), duration(12.3)
    ('12.3 us', '12.3 ms', '12.3 s')
    """
    for unit, factor in (("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.4g} s"


def _size(count: int | None) -> str:
    return "" if count is None else size(count)
