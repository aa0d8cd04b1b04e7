"""Memory plans of a model as data for the page, with the bytes in use at each node."""

from __future__ import annotations

from typing import Any

from delegraph.delegation.placement import Placement
from delegraph.json_records import to_json
from delegraph.memory import live_bytes
from delegraph.tools.memory_planners import IN_PLACE, PlannerResult
from delegraph.tools.memory_report import MemoryReport
from delegraph.tools.memory_suggestions import suggestions


def memory_json(
    report: MemoryReport, placement: Placement, core: MemoryReport | None
) -> dict[str, Any]:
    """Return the memory of a model with its delegates, and without them, for JSON.

    *report* is without the memory inside partitions. *core* is without delegates; it is None if no
    delegate has a node, or only delegates can run the model.
    """
    owners = dict.fromkeys(partition.delegate for partition in placement.partitions)
    return {
        **_plans_json(report),
        "not_counted": list(owners),
        "without_delegates": None if core is None else _plans_json(core),
    }


def _plans_json(report: MemoryReport) -> dict[str, Any]:
    """Return plans, tensors, operators, and the bytes in use at each node, for JSON."""
    tasks, used = live_bytes(report.records, report.alignment)
    return {
        **report.to_json(),
        "operators": list(report.operators),
        "start": report.start,
        "in_use": [[int(task), int(count)] for task, count in zip(tasks, used, strict=True)],
        "in_place": list(IN_PLACE),
        "planners": [_planner_json(report, result) for result in report.results],
        "subgraphs": [_plans_json(other) for other in report.others],
        "suggestions": to_json(suggestions(report)),
    }


def _planner_json(report: MemoryReport, result: PlannerResult) -> dict[str, Any]:
    """Return a plan for JSON; one that keeps inputs has each tensor's end and the bytes in use."""
    told = dict(result.to_json())
    if result.planner in IN_PLACE:
        told["last"] = report.last_positions(result)
        told["in_use"] = list(enumerate(report.bytes_in_use(result)))
    return told
