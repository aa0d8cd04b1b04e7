"""Suggestions that make a model's arena smaller, each with the bytes that it saves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from delegraph.json_records import JsonRecord
from delegraph.schema.enums import BuiltinOperator
from delegraph.tools.memory_planners import PlannerResult
from delegraph.tools.memory_report import MemoryReport

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


def suggestions(
    report: MemoryReport, result: PlannerResult | None = None, offline_saves: int = 0
) -> tuple[Suggestion, ...]:
    """Return up to three suggestions for a model, largest saving first.

    Savings are differences between the bytes in use in one plan: at its two fullest nodes, and with
    a quarter of the bytes of FLOAT32 tensors. There are no suggestions if a shape is unknown,
    because a later node may need most.

    Args:
        report: memory of the model.
        result: the plan; None means the report's first.
        offline_saves: bytes of TFLM's arena that an offline plan saves; 0 if it saves none, or if
            the model is not for TFLM.
    """
    if not report.is_complete:
        return ()
    result = result or report.results[0]
    least = max(LEAST_BYTES, LEAST_SHARE * result.bytes)
    found = [s for s in _all(report, result, offline_saves) if s.saves >= least]
    return tuple(sorted(found, key=lambda s: -s.saves)[:_SHOWN])


def _all(report: MemoryReport, result: PlannerResult, offline_saves: int) -> Iterator[Suggestion]:
    text = "a plan inside the model: --write-offline OUT.tflite writes it"
    yield Suggestion(offline_saves, text)
    peak = report.peak_of(result)
    if peak is None:
        return
    text = "INT8 in place of FLOAT32: post-training quantization of the model"
    yield Suggestion(peak.bytes - max(report.bytes_in_use(result, is_int8=True)), text)
    if peak.operator in BuiltinOperator.__members__:
        in_use = report.bytes_in_use(result)
        most = in_use.pop(peak.position)
        node = f"node {peak.node}, {peak.operator}"
        text = f"less at {node}: smaller, or computed in parts; no other node needs as much"
        yield Suggestion(most - max(in_use, default=most), text)
