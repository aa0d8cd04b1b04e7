"""Suggestions that make a model's arena smaller, each with the bytes that it saves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from delegraph.json_records import JsonRecord
from delegraph.memory import TensorUsageRecord, lower_bound
from delegraph.schema.enums import BuiltinOperator
from delegraph.tools.memory_report import OWN, MemoryReport

LEAST_SHARE, LEAST_BYTES = 0.02, 64
"""Least saving that is worth a suggestion: share of the arena, and number of bytes."""

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Suggestion(JsonRecord):
    """A way to make the arena smaller.

    Attributes:
        saves: largest number of bytes that it can save.
        text: the advice, in words.
    """

    saves: int
    text: str


def suggestions(report: MemoryReport) -> tuple[Suggestion, ...]:
    """Return up to three suggestions for a model, largest saving first.

    Savings are differences between computed sizes. These are the sizes of plans, the bytes in use
    at the two fullest nodes, and the bytes in use if FLOAT32 tensors were INT8.
    """
    least = max(LEAST_BYTES, LEAST_SHARE * report.bound)
    found = [s for s in _all(report) if s.saves >= least]
    return tuple(sorted(found, key=lambda s: -s.saves)[:_SHOWN])


def _all(report: MemoryReport) -> Iterator[Suggestion]:
    sizes = {result.planner: result.bytes for result in report.results}
    if {OWN, "best"} <= sizes.keys():
        text = (
            "another plan: the planner 'best' instead of the interpreter's; for TensorFlow Lite "
            "Micro, --write-offline OUT.tflite puts it into the model"
        )
        yield Suggestion(sizes[OWN] - sizes["best"], text)
    peak = report.peak
    if peak is None:
        return
    as_int8 = [
        TensorUsageRecord(-(-t.bytes // 4) if t.type == "FLOAT32" else t.bytes, t.first, t.last)
        for t in report.tensors
    ]
    text = "INT8 in place of FLOAT32: post-training quantization of the model"
    yield Suggestion(report.bound - lower_bound(as_int8, report.alignment), text)
    if peak.operator in BuiltinOperator.__members__:
        in_use = report.in_use.tolist()
        most = in_use.pop(peak.position)
        node = f"node {peak.node}, {peak.operator}"
        text = f"less at {node}: smaller, or computed in parts; no other node needs as much"
        yield Suggestion(most - max(in_use, default=most), text)
