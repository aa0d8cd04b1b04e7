"""The report of a model, and the function that makes it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delegraph.delegation.placement import Placement
from delegraph.errors import ArgumentError, DelegraphError, TimeLimitError
from delegraph.graph.model import Model
from delegraph.json_records import to_json
from delegraph.runtime.interpreter import Interpreter
from delegraph.tools.differing.difference import own_kernels
from delegraph.tools.explanation import (
    Explanation,
    Stage,
    explain,
    explain_placement,
    known_in_first_only,
    operator_counts,
)
from delegraph.tools.memory_report import MemoryReport, memory_report
from delegraph.tools.model_call import allocate, require_signature
from delegraph.tools.model_summary import ModelSummary, summarize_model
from delegraph.tools.page_origin import made_at, made_by
from delegraph.tools.reporting.differences import differences_json
from delegraph.tools.reporting.graph import Shapes, graph_json, placed_json
from delegraph.tools.reporting.memory import memory_json
from delegraph.tools.reporting.page import page
from delegraph.tools.reporting.times import benchmark_json, profile_json
from delegraph.tools.setup import Setup

if TYPE_CHECKING:
    from delegraph.tools.benchmarking.comparison import Comparison
    from delegraph.tools.benchmarking.result import BenchmarkResult
    from delegraph.tools.differing.difference import Difference
    from delegraph.tools.differing.layer_difference import LayersDifference
    from delegraph.tools.profiling.op_profile import OpProfile
    from delegraph.tools.setup import AnyInterpreter

FORMAT = 1
"""Version of the JSON format; it is raised by changes to which reading programs must adapt."""


@dataclass(frozen=True)
class Report:
    """Data of a report about a model.

    Attributes:
        title: name of the model's file.
        data: everything that the page shows, as JSON data.
    """

    title: str
    data: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return all data of the page."""
        return dict(self.data)

    def html(self) -> str:
        """Return the HTML page, which loads nothing from the network."""
        return page(self.title, self.data)

    def _repr_html_(self) -> str:
        """Return the page in a frame, which notebooks display."""
        frame = '<iframe sandbox="allow-scripts" style="width:100%;height:50rem;border:0"'
        return f'{frame} srcdoc="{escape(self.html())}"></iframe>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Raises:
            ArgumentError: the file cannot be written.
        """
        try:
            Path(path).write_text(self.html(), encoding="utf-8", newline="\n")
        except OSError as error:
            reason = error.strerror or error
            raise ArgumentError(f"cannot write {os.fspath(path)!r}: {reason}") from error


def report(
    setup: Setup,
    *,
    memory: bool = False,
    benchmark: BenchmarkResult | None = None,
    profile: OpProfile | None = None,
    comparison: Comparison | None = None,
    layers: LayersDifference | None = None,
    difference: Difference | None = None,
    beside: Setup | None = None,
    signature: str | None = None,
) -> Report:
    """Make a report of a model: its graph, its placement and the reasons of rejections.

    Delegates are applied and tensors get their shapes; no node is computed. Measurements come from
    the other tools.

    Args:
        setup: the model, and the runtime, delegates and threads that run it.
        memory: whether to show the arena plan of every planner, with the delegates and without
            them.
        benchmark: run times of the same set-up.
        profile: run times of its operators.
        comparison: comparison of its run time with other set-ups.
        layers: differences of its tensors from a reference.
        difference: difference of its outputs from the same reference, for the verdict; it is shown
            with *layers*.
        beside: another set-up of the same model, whose placement is shown as well.
        signature: the signature that is shown first, and that was measured; None means the first
            subgraph. The page shows the placement of all signatures.

    Raises:
        ArgumentError: *memory* is asked of the official interpreter, which does not report it;
            *beside* is another model; or the model has no such signature.
        DelegraphError: the model or a delegate cannot be used.
    """
    if memory and setup.runtime != "delegraph":
        raise ArgumentError("memory needs runtime='delegraph': the official one does not tell")
    if beside is not None and beside.model != setup.model:
        raise ArgumentError(
            f"beside is {beside.model!r}, expected {setup.model!r}: two placements of one model "
            "are shown; make a report of each model"
        )
    model = setup.loaded_model()
    if signature is not None:
        require_signature(signature, [each.key for each in model.signatures])
    summary = summarize_model(model)
    with setup.interpreter() as interpreter:
        problem = _allocated(interpreter, signature)
        explanation = _explanation(interpreter, model, setup.runtime)
        shapes = _shapes(interpreter)
        data = {
            **_head(setup, model, summary),
            **_placement_json(explanation),
            "signature": signature,
            "subgraphs": graph_json(model, explanation.placement, summary, shapes),
        }
        if problem is not None:
            data["problem"] = [line.strip() for line in problem.splitlines()]
        if memory and isinstance(interpreter, Interpreter):
            placement = explanation.placement
            core = _core_memory(setup) if placement.partitions else None
            data["memory"] = memory_json(memory_report(interpreter), placement, core)
    if beside is not None:
        data["beside"] = _beside_json(beside, model, signature)
    if benchmark is not None:
        data["benchmark"] = benchmark_json(benchmark)
    if profile is not None:
        data["profile"] = profile_json(profile)
    if comparison is not None:
        data["comparison"] = comparison_json(comparison)
    if layers is not None:
        data["differences"] = differences_json(layers, difference)
    return Report(Path(setup.model).name, data)


def _beside_json(setup: Setup, model: Model, signature: str | None) -> dict[str, Any]:
    """Return how another set-up places the same model's nodes, and where it differs, for JSON."""
    with setup.interpreter() as interpreter:
        _allocated(interpreter, signature)
        placement = _explanation(interpreter, model, setup.runtime).placement
    return {
        "setup": str(setup),
        "summary": str(placement),
        "host": placement.host,
        "delegates": list(placement.delegates),
        "notes": dict(placement.notes),
        "crossings": to_json(placement.crossings),
        "nodes": placed_json(model, placement),
    }


def _core_memory(setup: Setup) -> MemoryReport | None:
    """Return the memory of the model without delegates; None if only delegates can run it."""
    with own_kernels(setup).interpreter() as interpreter:
        if _allocated(interpreter, None) is not None or not isinstance(interpreter, Interpreter):
            return None
        return memory_report(interpreter)


def _allocated(interpreter: AnyInterpreter, signature: str | None) -> str | None:
    """Allocate a signature, or the first subgraph; return an error's text, or None on success.

    Custom operators that nothing can run are no error here, since the report shows them.
    """
    try:
        allocate(interpreter, signature)
    except TimeLimitError:
        raise
    except (DelegraphError, RuntimeError, ValueError) as error:
        return str(error)
    return None


def _explanation(interpreter: AnyInterpreter, model: Model, runtime: str) -> Explanation:
    if isinstance(interpreter, Interpreter):
        return explain(interpreter)
    first_only = known_in_first_only(runtime)
    return explain_placement(interpreter.placement, model, first_only=first_only)


def _shapes(interpreter: AnyInterpreter) -> Shapes:
    """Return present shapes of tensors; for LiteRT only those of the first subgraph."""
    count = interpreter.num_subgraphs() if isinstance(interpreter, Interpreter) else 1
    return {
        number: [details["shape"] for details in _details(interpreter, number)]
        for number in range(count)
    }


def _details(interpreter: AnyInterpreter, number: int) -> list[dict[str, Any]]:
    if isinstance(interpreter, Interpreter):
        return interpreter.get_tensor_details(number)
    found: list[dict[str, Any]] = interpreter.get_tensor_details()
    return found


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison with its verdicts as text, and without the times of all runs."""
    told = comparison.to_json()
    for timed, entry in zip(comparison.others, told["others"], strict=True):
        entry["words"] = comparison.words_on(timed) or None
        entry["warning"] = "" if timed.verdict is None else timed.verdict.warning
    for entry in (told["one"], told["again"], *told["others"]):
        entry.pop("blocks")
    return told | {"blocks": len(comparison.one.blocks)}


def _head(setup: Setup, model: Model, summary: ModelSummary) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "model": Path(setup.model).name,
        "setup": str(setup),
        "made_by": made_by(),
        "made_at": made_at(),
        "description": model.description,
        "bytes": summary.bytes,
        "constant_bytes": summary.constant_bytes,
        "parameters": summary.parameters,
        "macs": summary.macs,
        "macs_are_least": summary.macs_are_least,
        "quantization": summary.quantization,
    }


def _placement_json(explanation: Explanation) -> dict[str, Any]:
    placement = explanation.placement
    return {
        "summary": str(placement),
        "host": placement.host,
        "delegates": list(placement.delegates),
        "notes": dict(placement.notes),
        "stages": [_stage_json(placement, stage) for stage in explanation.stages],
        "default_delegate": placement.default_delegate,
        "crossings": to_json(placement.shown_crossings),
        "refusals": [to_json(r) | {"ops": operator_counts(r.ops)} for r in explanation.refusals],
        "signatures": to_json(explanation.signatures),
    }


def _stage_json(placement: Placement, stage: Stage) -> dict[str, Any]:
    told: dict[str, Any] = to_json(stage) | {"ops": operator_counts(stage.ops)}
    if stage.partition is not None:
        found = placement.partitions[stage.partition]
        told |= {"input_bytes": found.input_bytes, "output_bytes": found.output_bytes}
        told["constant_bytes"] = found.constant_bytes
    return told
