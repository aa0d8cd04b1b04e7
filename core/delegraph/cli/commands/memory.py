"""``delegraph memory``: shows how much memory a model's tensors need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.memory import print_memory
from delegraph.cli.answers.memory_answer import Applied, MemoryAnswer
from delegraph.cli.answers.printing import console, print_json, progress
from delegraph.cli.failure import CheckFailed
from delegraph.cli.options.arguments import (
    ByteCount,
    delegate_option,
    diagnosis_options,
    json_option,
    limit_options,
    model_argument,
)
from delegraph.cli.options.output_files import OutputFile
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.without_effect import require_effect
from delegraph.json_records import to_json
from delegraph.quantities import plural

if TYPE_CHECKING:
    from delegraph import Placement
    from delegraph.graph.model import Model
    from delegraph.tools.memory_report import MemoryReport


@dataclass(frozen=True)
class MemoryRequest:
    """Parsed options of ``delegraph memory``."""

    model: str
    planner: str
    budget: int | None
    align: int | None
    micro: bool
    draw: str | None
    write_offline: str | None
    delegates: tuple[str, ...]
    delegate_files: tuple[str, ...]
    time_limit: float | None
    memory_limit: int | None
    table_limit: int | None
    depth_limit: int | None
    weights_dir: str | None
    as_json: bool


_TFLM_ALIGNMENT = 16
"""Number of bytes to which TensorFlow Lite Micro aligns tensors, as every offline plan must."""

_OFFLINE = f"TFLM aligns to {_TFLM_ALIGNMENT}"


def _power_of_two(ctx: click.Context, parameter: click.Parameter, number: int | None) -> int | None:
    if number is not None and number & (number - 1):
        raise click.BadParameter(f"{number} is no power of two, expected 1, 2, 4, 8, 16, 32 or 64")
    return number


@click.command("memory", cls=SectionedCommand)
@model_argument
@click.option(
    "--planner",
    default="all",
    show_default=True,
    metavar="NAME",
    help="One planner, or all but the exact one.",
)
@click.option(
    "--budget",
    type=ByteCount(),
    help="Exit with 1 when more is needed: 256K, 1.5M; K is 1,024 bytes.",
)
@click.option(
    "--align",
    type=click.IntRange(1, 64),
    callback=_power_of_two,
    help="Alignment of tensors in bytes.  [default: 64; 16 with --micro]",
)
@click.option("--micro", is_flag=True, help="Estimate TensorFlow Lite Micro's arena as well.")
@click.option(
    "--draw",
    "--plot",
    "draw",
    type=OutputFile(".svg", ".png", ".html"),
    metavar="FILE",
    help="Draw the arena over time: .svg, .png or .html.",
)
@click.option(
    "--write-offline",
    type=OutputFile(),
    metavar="OUT.tflite",
    help="Write the model with its plan inside, for TFLM.",
)
@delegate_option
@limit_options
@json_option
@diagnosis_options
def command(**options: Any) -> None:
    """Show how much memory tensors need, as planned.

    Plans are made for the model with its delegates, and for the core alone. Each planner's size is
    shown beside the lower bound of all plans, with a chart of the bytes in use over time, and what
    would save memory. Budget, picture, bound and offline plan are of the delegates named by
    --delegate; without any, or with --micro, of the core alone. Their planner is that of --planner;
    else the interpreter's own, or with --micro TFLM's. An offline plan is by default the best one.
    """
    request = MemoryRequest(**options)
    if request.draw is not None:
        from delegraph.tools.memory_plot import require_drawable

        require_drawable(request.draw)
    answer = _answer(request)
    if request.draw is not None:
        from delegraph.tools.memory_plot import draw_plan

        with progress(f"drawing {request.draw}"):
            draw_plan(answer.shown, answer.chosen, request.draw, _title(request, answer))
        click.echo(f"arena drawn to {request.draw}", err=True)
    if request.write_offline is not None:
        _write_offline(request, answer)
    if request.as_json:
        print_json(_json(request, answer))
    else:
        print_memory(console(), request.model, answer)
    if request.budget is not None:
        within = _within_budget(answer, request.budget)
        if not request.as_json:
            click.echo(f"\n{within}")


def _within_budget(answer: MemoryAnswer, budget: int) -> str:
    """Return a sentence which says that the budget holds, and for what it does not vouch.

    Raises:
        CheckFailed: more is needed; or this cannot be known, because a shape or the memory of a
            kernel is unknown, or because TFLM cannot run the model.
    """
    least = "at least " * bool(answer.unknown)
    spread = f" +- {answer.uncertainty:,}" * bool(answer.uncertainty)
    needed, most = f"{least}{answer.needed:,}{spread}", answer.needed + answer.uncertainty
    needs = f"{needed} bytes needed, {budget:,} allowed ({answer.planned_by})"
    if answer.needed > budget:
        raise CheckFailed(f"over budget: {needs}")
    if answer.unknown:
        raise CheckFailed(f"the budget cannot be checked: {needs}; {answer.unknown}")
    safe = f"; {most:,} are enough for certain" * (most > budget)
    more = answer.not_counted and f"; {answer.not_counted}"
    return (
        f"within the budget: {needed} of {budget:,} bytes needed ({answer.planned_by}){safe}{more}"
    )


def _answer(request: MemoryRequest) -> MemoryAnswer:
    from delegraph.delegation.dry_run import dry_run
    from delegraph.micro.estimate import estimate_arena
    from delegraph.micro.offline_plans import plan_in_words
    from delegraph.tools.offline_plan import offline_saving
    from delegraph.tools.setup import Setup

    if request.write_offline is not None:
        if set(request.delegates) - {"none"} or request.delegate_files:
            raise click.UsageError("--write-offline plans the model as it is, without --delegate")
        if request.align not in (None, _TFLM_ALIGNMENT):
            require_effect(("align",), f"has no effect with --write-offline: {_OFFLINE}")
    delegates: Sequence[Any] | None = Setup(
        request.model,
        delegates=request.delegates or (() if request.delegate_files else None),
        delegate_files=request.delegate_files,
    ).requested_delegates()
    if request.micro:  # TFLM runs no delegate
        delegates = []
    with progress(f"planning {request.model}"), dry_run():
        runs, core = _reports(request, delegates)
        model = _model(request)
        estimate = estimate_arena(model) if request.micro else None
        saves = 0
        if estimate is not None and core is not None:
            saves = offline_saving(model, core, estimate)
    answer = MemoryAnswer(
        runs, core, bool(delegates), request.planner, estimate, saves, plan_in_words(model)
    )
    if answer.is_planned:
        _note_left_out(request, answer.subject)
    return answer


def _title(request: MemoryRequest, answer: MemoryAnswer) -> str:
    """Title of the picture: the file, and the subgraph if several run."""
    return f"{Path(request.model).name}{answer.of_shown}"


def _reports(
    request: MemoryRequest, delegates: Sequence[Any] | None
) -> tuple[Applied | None, MemoryReport | None]:
    """Return the memory report with delegates, and the report of Delegraph's kernels alone.

    The first is None if delegates claim no node, the second if only delegates can run the model.
    Both are None if neither runs it, and only TFLM's arena is asked for.

    Args:
        request: parsed options of the command.
        delegates: the requested delegates; None means the default ones.
    """
    from delegraph.errors import UnresolvedOpError

    runs = None
    is_for_tflm = request.micro and request.draw is None and request.write_offline is None
    try:
        if delegates is None or delegates:
            report, placement = _report(request, delegates)
            if placement.partitions or delegates:
                runs = Applied(report, placement)
        return runs, _report(request, [])[0]
    except UnresolvedOpError:
        if runs is None and not is_for_tflm:
            raise
        return runs, None


def _report(
    request: MemoryRequest, delegates: Sequence[Any] | None
) -> tuple[MemoryReport, Placement]:
    """Return the report with these delegates; None means the default delegates."""
    from delegraph import Interpreter, Limits, OpResolverType
    from delegraph.tools.memory_planners import FOR_TFLM
    from delegraph.tools.memory_report import memory_report

    # Without delegates the model is planned as it is: its compiled partitions have no kernel.
    alone = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    with Interpreter(
        request.model,
        delegates=delegates or None,
        experimental_op_resolver_type=alone if delegates == [] else OpResolverType.AUTO,
        limits=Limits(
            time=request.time_limit,
            memory=request.memory_limit,
            tables=request.table_limit,
            depth=request.depth_limit,
            weights_dir=request.weights_dir,
        ),
    ) as interpreter:
        interpreter.allocate_tensors()
        compared = FOR_TFLM if request.micro else None
        planners = compared if request.planner == "all" else (request.planner,)
        return memory_report(interpreter, planners, _alignment(request)), interpreter.placement


def _alignment(request: MemoryRequest) -> int:
    """Return the number of bytes to which tensors are aligned: as TFLM does, if it is for TFLM."""
    from delegraph.tools.memory_report import DEFAULT_ALIGNMENT

    if request.write_offline is not None:
        return _TFLM_ALIGNMENT
    if request.align is not None:
        return request.align
    return _TFLM_ALIGNMENT if request.micro else DEFAULT_ALIGNMENT


def _note_left_out(request: MemoryRequest, report: MemoryReport) -> None:
    """Print a note on stderr about planners that would take too long for the model."""
    from delegraph.tools.memory_planners import COMPARED

    found = report.bytes_by_planner
    for name in COMPARED if request.planner == "all" and not request.micro else ():
        if name not in found:
            count = plural(max(len(arena.tensors) for arena in report.arenas), "tensor")
            click.echo(f"{name} is left out: slow with {count}; ask by --planner {name}", err=True)


def _model(request: MemoryRequest) -> Model:
    from delegraph.graph.loader import load_model

    return load_model(request.model, request.table_limit, request.memory_limit, request.weights_dir)


def _write_offline(request: MemoryRequest, answer: MemoryAnswer) -> None:
    from delegraph.tools.memory_planners import IN_PLACE
    from delegraph.tools.offline_plan import with_offline_plan

    assert request.write_offline is not None
    if answer.core is None:
        raise click.UsageError("--write-offline plans the model as it is, which only delegates run")
    if answer.core.open_shape is not None:
        raise click.UsageError(f"--write-offline needs all shapes: {answer.core.open_shape}")
    chosen = answer.subject.result_of("best" if request.planner == "all" else request.planner)
    if chosen.planner in IN_PLACE:
        raise click.UsageError(
            f"planner {chosen.planner!r} lets operators compute in place, which TFLM does "
            "not; take another"
        )
    tensors = answer.subject.tensors
    offsets = {t.index: o for t, o in zip(tensors, chosen.offsets, strict=True)}
    content = with_offline_plan(_model(request), offsets)
    try:
        Path(request.write_offline).write_bytes(content)
    except OSError as error:
        reason = error.strerror or error
        raise click.UsageError(f"--write-offline {request.write_offline!r}: {reason}") from error
    click.echo(f"model with its plan written to {request.write_offline}; {_OFFLINE}", err=True)


def _json(request: MemoryRequest, answer: MemoryAnswer) -> dict[str, Any]:
    return {
        "model": request.model,
        **(_plans_json(answer) if answer.is_planned else {"subject": None}),
        "micro": to_json(answer.estimate),
        "offline_plan": answer.offline_plan,
        "budget": request.budget,
        "needed": answer.needed,
        "needed_of": answer.planned_by,
    }


def _plans_json(answer: MemoryAnswer) -> dict[str, Any]:
    is_core = answer.subject is answer.core
    runs = None if answer.runs is None else answer.runs.report
    return {
        "subject": answer.subject_name,
        **_report_json(answer.subject, answer.planner_name),
        "with_delegates": _other_json(runs if is_core else None, answer.planner_name),
        "without_delegates": _other_json(None if is_core else answer.core, answer.planner_name),
        "suggestions": to_json(answer.suggestions),
    }


def _other_json(report: MemoryReport | None, planner: str) -> dict[str, Any] | None:
    return None if report is None else _report_json(report, planner)


def _report_json(report: MemoryReport, planner: str) -> dict[str, Any]:
    """Return a report as JSON, with the peaks and the lifetimes of tensors in a planner's plan."""
    shown = report.to_json()
    for arena, told in zip(report.arenas, (shown, *shown["subgraphs"]), strict=True):
        result = arena.result_of(planner)
        told["peak"] = to_json(arena.peak_of(result))
        for tensor, last in zip(told["tensors"], arena.last_positions(result), strict=True):
            tensor["last"] = last
    return shown
