"""Memory plans of a model as data for the page, with the bytes in use at each node."""

from __future__ import annotations

from typing import Any

from delegraph.memory import live_bytes
from delegraph.tools.memory_report import IN_PLACE, MemoryReport


def memory_json(report: MemoryReport) -> dict[str, Any]:
    """Return plans, tensors, operators, and the bytes in use at each node, for JSON."""
    tasks, used = live_bytes(report.records, report.alignment)
    return {
        **report.to_json(),
        "operators": list(report.operators),
        "in_use": [[int(task), int(count)] for task, count in zip(tasks, used, strict=True)],
        "in_place": list(IN_PLACE),
    }
