"""What a report of a model shows, and the function that makes one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import delegraph
from delegraph.delegation.placement import Placement, record_json
from delegraph.errors import ArgumentError, DelegraphError, TimeLimitError, printable
from delegraph.graph.loader import load_model
from delegraph.graph.model import Model
from delegraph.runtime.interpreter import Interpreter
from delegraph.tools.explanation import Explanation, explain, explain_placement, operator_counts
from delegraph.tools.model_summary import ModelSummary, summarize_model
from delegraph.tools.reporting.graph import Shapes, graph_json
from delegraph.tools.reporting.page import page
from delegraph.tools.setup import Setup

if TYPE_CHECKING:
    from delegraph.native import LiteRtInterpreter

FORMAT = 1
"""Of the JSON; goes up when a program that reads it has to change."""


@dataclass(frozen=True)
class Report:
    """What there is to show of a model.

    Attributes:
        title: name of the model's file.
        data: all that the page shows, ready for JSON.
    """

    title: str
    data: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return all that the page shows."""
        return dict(self.data)

    def html(self) -> str:
        """Return the page: one document that loads nothing from elsewhere."""
        return page(self.title, self.data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Raises:
            ArgumentError: the file cannot be written.
        """
        try:
            Path(path).write_text(self.html(), encoding="utf-8", newline="\n")
        except OSError as error:
            raise ArgumentError(f"cannot write {os.fspath(path)!r}: {error}") from error


def report(setup: Setup) -> Report:
    """Return a report of a model: its graph, who runs what in it, and why.

    Delegates are applied and tensors get their shapes; nothing is computed.

    Args:
        setup: the model and what runs it.

    Raises:
        DelegraphError: the model or a delegate cannot be used.
    """
    model = load_model(setup.model, setup.table_limit)
    with setup.interpreter() as interpreter:
        problem = _allocated(interpreter)
        explanation = _explanation(interpreter, model)
        data = {
            **_head(setup, model, summarize_model(model)),
            **_placement_json(explanation),
            "subgraphs": graph_json(
                model, explanation.placement, summarize_model(model), _shapes(interpreter)
            ),
        }
        if problem is not None:
            data["problem"] = printable(problem)
    return Report(Path(setup.model).name, data)


def _allocated(interpreter: Interpreter | LiteRtInterpreter) -> str | None:
    """Give tensors their shapes; return why that cannot be, for then the file's shapes are shown.

    A custom operator that nothing runs is a thing to see in the graph, not an end.
    """
    try:
        interpreter.allocate_tensors()
    except TimeLimitError:
        raise
    except (DelegraphError, RuntimeError, ValueError) as error:
        return str(error)
    return None


def _explanation(interpreter: Interpreter | LiteRtInterpreter, model: Model) -> Explanation:
    if isinstance(interpreter, Interpreter):
        return explain(interpreter)
    return explain_placement(interpreter.placement, model)


def _shapes(interpreter: Interpreter | LiteRtInterpreter) -> Shapes:
    """Return the present shapes; the official interpreter tells those of the first subgraph."""
    count = interpreter.num_subgraphs() if isinstance(interpreter, Interpreter) else 1
    return {
        number: [details["shape"] for details in _details(interpreter, number)]
        for number in range(count)
    }


def _details(interpreter: Interpreter | LiteRtInterpreter, number: int) -> list[dict[str, Any]]:
    if isinstance(interpreter, Interpreter):
        return interpreter.get_tensor_details(number)
    found: list[dict[str, Any]] = interpreter.get_tensor_details()
    return found


def _head(setup: Setup, model: Model, summary: ModelSummary) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "model": printable(Path(setup.model).name),
        "setup": printable(str(setup)),
        "made_by": f"Delegraph {delegraph.__version__}",
        "made_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "description": printable(model.description),
        "bytes": summary.bytes,
        "constant_bytes": summary.constant_bytes,
    }


def _placement_json(explanation: Explanation) -> dict[str, Any]:
    placement = explanation.placement
    return {
        "summary": str(placement),
        "host": placement.host,
        "delegates": list(placement.delegates),
        "notes": {name: printable(note) for name, note in placement.notes.items()},
        "stages": [_stage_json(placement, i, explanation) for i in range(len(explanation.stages))],
        "crossings": [
            record_json(crossing) | {"name": printable(crossing.name)}
            for crossing in placement.crossings
        ],
        "refusals": [
            {"delegate": r.delegate, "op": printable(r.op), "reason": printable(r.reason)}
            | {"subgraph": r.subgraph, "nodes": list(r.nodes), "runs_on": r.runs_on}
            | {"constraint": printable(r.constraint), "is_unresolved": r.is_unresolved}
            for r in explanation.refusals
        ],
    }


def _stage_json(placement: Placement, position: int, explanation: Explanation) -> dict[str, Any]:
    stage = explanation.stages[position]
    told: dict[str, Any] = {
        "subgraph": stage.subgraph,
        "delegate": stage.delegate,
        "partition": stage.partition,
        "nodes": list(stage.nodes),
        "operators": printable(operator_counts(stage.ops)),
        "is_unresolved": stage.is_unresolved,
    }
    if stage.partition is not None:
        found = placement.partitions[stage.partition]
        told |= {"input_bytes": found.input_bytes, "output_bytes": found.output_bytes}
        told["constant_bytes"] = found.constant_bytes
    return told
