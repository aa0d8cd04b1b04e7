"""Texts about a compilation: the real compiler's summary, and additions of this package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from delegraph.delegation import node_numbers
from delegraph_edgetpu.compilation import Compilation
from delegraph_edgetpu.devices import CACHE_BYTES
from delegraph_edgetpu.mapping import OperatorMapping
from delegraph_edgetpu.reasons import Reason

_SHOWN = 2
"""Largest number of reasons that the row of an operator shows."""

_UNITS = ("B", "KiB", "MiB", "GiB")


def summary_lines(compilation: Compilation, folder: str = ".") -> list[str]:
    """Return the lines that the real compiler would print about a model compiled to *folder*."""
    memory, out = compilation.memory, Path(folder)
    return [
        f"Input model: {compilation.source}",
        f"Input size: {binary_size(compilation.source_bytes)}",
        f"Output model: {out / compilation.name}",
        f"Output size: {binary_size(len(compilation.model))}",
        f"On-chip memory used for caching model parameters: {binary_size(memory.cached_bytes)}",
        "On-chip memory remaining for caching model parameters: "
        f"{binary_size(memory.remaining_bytes)}",
        "Off-chip memory used for streaming uncached model parameters: "
        f"{binary_size(memory.streamed_bytes)}",
        "Number of Edge TPU subgraphs: 1",
        f"Total number of operations: {len(compilation.operators)}",
        f"Operation log: {out / compilation.log_name}",
    ]


def count_lines(compilation: Compilation) -> list[str]:
    """Return lines with the numbers of *compilation*'s operators on the Edge TPU and on the CPU."""
    return [
        f"Number of operations that will run on Edge TPU: {len(compilation.mapped)}",
        f"Number of operations that will run on CPU: {len(compilation.unmapped)}",
    ]


def work_lines(compilation: Compilation) -> list[str]:
    """Return lines with the multiply-adds, parameter memory and time estimate of *compilation*."""
    work, memory, estimate = compilation.work, compilation.memory, compilation.estimate
    total = work.mapped + work.unmapped
    share = f", {work.mapped / total:.1%}" if total else ""
    lines = [
        f"Multiply-adds on the Edge TPU: {work.mapped:,} of {total:,}{share}",
        f"Parameters: {memory.parameter_bytes:,} bytes, {memory.cached_bytes:,} of them in the "
        f"cache of {CACHE_BYTES:,}",
        f"Device time, an estimate: at least {duration(estimate.seconds)} "
        f"(array {duration(estimate.compute)}, inputs and outputs "
        f"{duration(estimate.transfer)}, streamed parameters "
        f"{duration(estimate.streaming)}; the host's time is left out)",
    ]
    if memory.streamed_bytes:
        lines.append(
            f"{memory.streamed_bytes:,} bytes of parameters do not fit and are sent at each "
            "inference; segments (-n) give each its own cache"
        )
    return lines


def pipeline_line(segments: Sequence[Compilation], whole: Compilation) -> str:
    """Return a line that compares the slowest segment of a pipeline with the whole model.

    A pipeline answers as often as its slowest segment.
    """
    times = [segment.estimate.seconds for segment in segments]
    slowest, alone = max(times), whole.estimate.seconds
    verdict = f"{alone / slowest:.1f} times as often as one device"
    if slowest >= alone:
        verdict = "no faster than one device: leave -n out, or try another --balance or number"
    return (
        f"Pipeline of {len(segments)} segments: an answer each {duration(slowest)}, the time "
        f"of segment {times.index(slowest)}; the whole model takes {duration(alone)}: {verdict}"
    )


def unmapped_rows(operators: Sequence[OperatorMapping]) -> list[tuple[str, str, str, str]]:
    """Return table rows of unmapped operators: nodes, operator, reasons, remedies.

    Operators with the same reasons and remedies share a row, and so do all operators that depend
    on the same unmapped node; these rows come last.
    """
    groups: dict[tuple[object, ...], list[OperatorMapping]] = {}
    for operator in operators:
        if operator.reasons:
            is_behind = operator.reasons[0].rule == "behind"
            reasons = operator.reasons[:1] if is_behind else operator.reasons
            key = is_behind, *dict.fromkeys(f"{_why(r)} {r.remedy}" for r in reasons)
            groups.setdefault(key, []).append(operator)
    return [_row(group) for _, group in sorted(groups.items(), key=lambda each: each[0][0] is True)]


def _why(reason: Reason) -> str:
    """Text of *reason* in the table; only the log names tensors of a wrong type."""
    is_type = reason.rule in ("parameter-type", "tensor-type")
    return f"its tensors {reason.expected}" if is_type else str(reason)


def _row(operators: Sequence[OperatorMapping]) -> tuple[str, str, str, str]:
    counts = Counter(operator.name for operator in operators)
    names = ", ".join(f"{name} x{n}" if n > 1 else name for name, n in sorted(counts.items()))
    reasons = operators[0].reasons
    texts = list(dict.fromkeys(map(_why, reasons)))
    more = f"; and {len(texts) - _SHOWN} more, see the log" if len(texts) > _SHOWN else ""
    why = "; ".join(texts[:_SHOWN]) + more
    remedies = "; ".join(dict.fromkeys(reason.remedy for reason in reasons))
    return node_numbers([o.index for o in operators]), names, why, remedies


def binary_size(count: int) -> str:
    """Return *count*, a number of bytes, in the real compiler's format.

    >>> binary_size(0), binary_size(4_700_000)
    ('0.00B', '4.48MiB')
    """
    value, unit = float(count), _UNITS[0]
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{value:.2f}{unit}"


def duration(seconds: float) -> str:
    """Return a time as text with a unit.

    >>> duration(0.00334), duration(0.00000212), duration(4)
    ('3.34 ms', '2.12 us', '4 s')
    """
    for unit, factor in (("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.4g} s"
