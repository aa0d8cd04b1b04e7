"""Prints the result of ``delegraph benchmark``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph.cli.answers.printing import (
    heading,
    print_paragraph,
    print_table,
    print_title,
    signature_text,
    size,
)
from delegraph.quantities import duration, few_of, plural, rate_text
from delegraph.tools.benchmarking.threads import threads_text

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.benchmarking.earlier_result import SinceThen
    from delegraph.tools.benchmarking.handed_on import HandedOn
    from delegraph.tools.benchmarking.result import BenchmarkResult
    from delegraph.tools.latency import Latency

_SHOWN_STATES = 4
"""Number of states that are named; a language model has two states for each layer."""


_BESIDE = {"init": "init (one sample)", "peak memory": "peak memory (one sample)"}
"""Labels of figures beside those of an earlier result, where a command has one of each."""


def print_answer(out: Console, result: BenchmarkResult) -> None:
    """Print times and memory of a model."""
    print_title(out, result.name or str(result.setup["model"]))
    if result.signature is not None:
        print_paragraph(out, signature_text(result.signature, result.signatures))
    elif len(result.signatures) > 1:
        names = ", ".join(result.signatures)
        print_paragraph(out, f"the first subgraph; --signature measures one of: {names}")
    print_paragraph(out, result.placement)
    print_paragraph(out, f"threads: {threads_text(result.threads)}")
    heading(out, "Stages")
    columns = ("stage", "time", "memory after", "peak")
    shown = {"invoke": "all runs"}
    rows = [
        (shown.get(s.name, s.name), duration(s.seconds), size(s.memory), size(s.peak))
        for s in result.stages
    ]
    print_table(out, columns, rows, right=columns[1:])
    first = result.first_inference_seconds
    told = "" if first is None else f", first inference {duration(first)}"
    out.print()
    out.print(f"init {duration(result.init_seconds)}{told}")
    _print_latencies(out, result)
    for caution in result.cautions:
        out.print(f"caution: {caution}")


def _print_latencies(out: Console, result: BenchmarkResult) -> None:
    """Print the statistics as rows, since a table with one column per statistic is too wide."""
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
        count = plural(len(result.runs), "run")
        least = result.control.runs
        if len(result.runs) > least and not result.control.frequency:
            count += f" in {result.control.min_seconds:g} s (--min-seconds 0 stops after {least})"
        rests = result.control.frequency or result.control.delay
        ran = f"; with rests, {rate_text(len(result.runs) / result.elapsed)} a second ran"
        print_paragraph(
            out,
            f"{count}, {rate_text(rate)} inferences a second by the mean{ran if rests else ''}",
            indent=0,
        )
    print_handed_on(out, result.handed_on, result.tokens_per_second)


def print_handed_on(out: Console, handed_on: HandedOn | None, rate: float | None) -> None:
    """Print states, such as KV caches, that each run passes to the next run, and tokens per second.

    If there are no states, nothing is printed. The *rate* is None if it is unknown.
    """
    if handed_on is None:
        return
    names = few_of(handed_on.names, _SHOWN_STATES)
    copied = f"{size(handed_on.copied_bytes)} copied" if handed_on.copied_bytes else "not copied"
    print_paragraph(
        out, f"state: each run hands {names} on to the next: {size(handed_on.bytes)}, {copied}"
    )
    if rate is not None and handed_on.tokens is not None:
        out.print(f"{plural(handed_on.tokens, 'token')} a run, {rate_text(rate)} tokens a second")


def print_since_then(out: Console, since: SinceThen) -> None:
    """Print the figures beside those of an earlier result, and the verdict."""
    heading(out, f"Beside {since.path}")
    rows = []
    for name, (then, now) in since.figures.items():
        shown = (_figure(name, value) for value in (then, now))
        change = f"{100 * (now / then - 1):+.1f} %" if then and now else ""
        rows.append((_BESIDE.get(name, name), *shown, change))
    columns = ("", "then", "now", "change")
    print_table(out, columns, rows, right=columns[1:])
    out.print()
    is_noisy = since.verdict == "too noisy"
    verdict = "too noisy to tell" if is_noisy else f"now {since.verdict}"
    out.print(f"{verdict}: ratio {since.ratio} of the quickest runs", style="bold")
    for change in since.changes:
        print_paragraph(out, f"not as then: {change}", indent=0)


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return size(int(value)) if name == "peak memory" else duration(value)


def _figures(latency: Latency) -> dict[str, str]:
    """Return statistics of run times, such as the median, as texts by name."""
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
