"""``delegraph memory``: shows how much memory a model's tensors need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import (
    console,
    heading,
    plural,
    print_json,
    print_table,
    progress,
)
from delegraph.cli.failure import CheckFailed
from delegraph.cli.options.arguments import (
    ByteCount,
    delegate_option,
    diagnosis_options,
    json_option,
    limit_options,
    model_argument,
)
from delegraph.cli.options.sections import SectionedCommand
from delegraph.json_records import to_json

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.graph.model import Model
    from delegraph.micro.estimate import ArenaEstimate
    from delegraph.tools.memory_report import MemoryReport, PlannerResult

_SHOWN_TENSORS = 8


@dataclass(frozen=True)
class MemoryRequest:
    """Parsed options of ``delegraph memory``."""

    model: str
    planner: str
    budget: int | None
    align: int
    micro: bool
    plot: str | None
    write_offline: str | None
    delegates: tuple[str, ...]
    delegate_files: tuple[str, ...]
    time_limit: float | None
    memory_limit: int | None
    table_limit: int | None
    depth_limit: int | None
    weights_dir: str | None
    as_json: bool


@dataclass(frozen=True)
class MemoryAnswer:
    """Result of ``delegraph memory``.

    Attributes:
        report: report of the graph with delegates applied.
        plain: report of the graph without delegates; None if no delegate is named.
        estimate: estimate of TFLM's arena; None if not requested.
        chosen: the planner's result that is used for budget, picture and offline plan.
    """

    report: MemoryReport
    plain: MemoryReport | None
    estimate: ArenaEstimate | None
    chosen: PlannerResult

    @property
    def needed(self) -> int:
        """Number of bytes that are compared with the budget."""
        return self.chosen.bytes if self.estimate is None else self.estimate.total_bytes


@click.command("memory", cls=SectionedCommand)
@model_argument
@click.option(
    "--planner",
    default="all",
    show_default=True,
    metavar="NAME",
    help="One planner, or all but the exact one.",
)
@click.option("--budget", type=ByteCount(), help="Exit with 1 when more is needed: 256K, 1.5M.")
@click.option(
    "--align",
    type=click.IntRange(1, 64),
    default=64,
    show_default=True,
    help="Bytes that tensors are aligned to.",
)
@click.option("--micro", is_flag=True, help="Estimate TensorFlow Lite Micro's arena as well.")
@click.option("--plot", metavar="FILE", help="Draw the plan to a .svg, .png or .html file.")
@click.option(
    "--write-offline",
    metavar="OUT.tflite",
    help="Write the model with its plan inside, for TFLM.",
)
@delegate_option
@limit_options
@json_option
@diagnosis_options
def command(**options: Any) -> None:
    """Show how much memory tensors need, by every planner.

    Each planner's size is shown beside the lower bound of all plans. Budget, picture and offline
    plan use --planner; with all, they use the best planner.
    """
    request = MemoryRequest(**options)
    answer = _answer(request)
    if request.as_json:
        print_json(_json(request, answer))
    else:
        _print(console(), request, answer)
    if request.plot is not None:
        from delegraph.tools.memory_plot import draw_plan

        with progress(f"drawing {request.plot}"):
            draw_plan(answer.report, answer.chosen, request.plot, Path(request.model).name)
        click.echo(f"plan drawn to {request.plot}", err=True)
    if request.write_offline is not None:
        _write_offline(request, answer)
    if request.budget is not None and answer.needed > request.budget:
        raise CheckFailed(f"over budget: {answer.needed} bytes needed, {request.budget} allowed")


def _answer(request: MemoryRequest) -> MemoryAnswer:
    from delegraph.delegation.dry_run import dry_run
    from delegraph.micro.estimate import estimate_arena
    from delegraph.tools.memory_report import COMPARED
    from delegraph.tools.setup import Setup

    if request.write_offline is not None and request.delegates + request.delegate_files:
        raise click.UsageError("--write-offline plans the model as it is, without --delegate")
    planners = None if request.planner == "all" else (request.planner,)
    setup = Setup(request.model, delegates=request.delegates, delegate_files=request.delegate_files)
    delegates = setup.requested_delegates()
    align = 16 if request.write_offline is not None else request.align
    with progress(f"planning {request.model}"), dry_run():
        report = _report(request, delegates or [], planners, align)
        plain = _report(request, [], planners, align) if delegates else None
        model = _model(request) if request.micro else None
        estimate = None if model is None else estimate_arena(model)
    chosen = report.result_of("best" if request.planner == "all" else request.planner)
    found = {result.planner for result in report.results}
    for name in COMPARED if planners is None else ():
        if name not in found:
            count = plural(len(report.tensors), "tensor")
            click.echo(f"{name} is left out: slow with {count}; ask by --planner {name}", err=True)
    return MemoryAnswer(report, plain, estimate, chosen)


def _report(
    request: MemoryRequest, delegates: Sequence[Any], planners: Sequence[str] | None, alignment: int
) -> MemoryReport:
    from delegraph import Interpreter, Limits, OpResolverType
    from delegraph.tools.memory_report import memory_report

    # Without delegates the model is planned as it is: its compiled partitions have no kernel.
    alone = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    with Interpreter(
        request.model,
        delegates=delegates or None,
        experimental_op_resolver_type=OpResolverType.AUTO if delegates else alone,
        limits=Limits(
            time=request.time_limit,
            memory=request.memory_limit,
            tables=request.table_limit,
            depth=request.depth_limit,
            weights_dir=request.weights_dir,
        ),
    ) as interpreter:
        interpreter.allocate_tensors()
        return memory_report(interpreter, planners, alignment)


def _model(request: MemoryRequest) -> Model:
    from delegraph.graph.loader import load_model

    return load_model(request.model, request.table_limit, request.memory_limit, request.weights_dir)


def _write_offline(request: MemoryRequest, answer: MemoryAnswer) -> None:
    from delegraph.tools.memory_report import IN_PLACE
    from delegraph.tools.offline_plan import with_offline_plan

    assert request.write_offline is not None
    if answer.chosen.planner in IN_PLACE:
        raise click.UsageError(
            f"planner {answer.chosen.planner!r} lets operators compute in place, which TFLM does "
            "not; take another"
        )
    tensors = answer.report.tensors
    offsets = {t.index: o for t, o in zip(tensors, answer.chosen.offsets, strict=True)}
    content = with_offline_plan(_model(request), offsets)
    try:
        Path(request.write_offline).write_bytes(content)
    except OSError as error:
        raise click.UsageError(f"--write-offline {request.write_offline!r}: {error}") from error
    click.echo(f"model with its plan written to {request.write_offline}", err=True)


def _json(request: MemoryRequest, answer: MemoryAnswer) -> dict[str, Any]:
    return {
        "model": request.model,
        **answer.report.to_json(),
        "without_delegates": to_json(answer.plain),
        "micro": to_json(answer.estimate),
        "budget": request.budget,
        "needed": answer.needed,
    }


def _print(out: Console, request: MemoryRequest, answer: MemoryAnswer) -> None:
    report = answer.report
    out.print(request.model, style="bold")
    out.print(
        f"  {plural(len(report.tensors), 'tensor')} in the arena, aligned to {report.alignment}; "
        f"{report.persistent_bytes} bytes of variables beside it"
    )
    if not report.is_complete:
        out.print("  up to the first node whose output shape is known only while invoking")
    _print_planners(out, answer)
    if report.peak is not None:
        _print_peak(out, report)
    if answer.estimate is not None:
        _print_micro(out, answer.estimate)


def _print_planners(out: Console, answer: MemoryAnswer) -> None:
    from delegraph.tools.memory_report import IN_PLACE

    heading(out, "Planners")
    columns = ["planner", "bytes", "bound", "of the bound", "milliseconds"]
    plain = {} if answer.plain is None else {r.planner: r.bytes for r in answer.plain.results}
    if plain:
        columns.insert(2, "without delegates")
    rows = [
        (
            result.planner,
            result.bytes,
            *((plain[result.planner],) if plain else ()),
            result.bound,
            "least possible" if result.is_optimal else f"{result.ratio:.3f}",
            f"{result.milliseconds:.2f}",
        )
        for result in answer.report.results
    ]
    right = ("bytes", "without delegates", "bound", "of the bound", "milliseconds")
    print_table(out, columns, rows, right=right)
    in_place = [r.planner for r in answer.report.results if r.planner in IN_PLACE]
    if in_place:
        verb = "computes" if len(in_place) == 1 else "compute"
        out.print(
            f"  {' and '.join(in_place)} {verb} in place and keep the model's inputs, which has a "
            "bound of its own",
            soft_wrap=True,
        )


def _print_peak(out: Console, report: MemoryReport) -> None:
    peak = report.peak
    assert peak is not None
    heading(out, f"Most is in use at node {peak.node}, {peak.operator}: {peak.bytes} bytes")
    alive = [report.tensors[i] for i in peak.tensors]
    rows = [(t.index, t.name, t.bytes, f"{t.first}-{t.last}") for t in alive[:_SHOWN_TENSORS]]
    print_table(out, ("tensor", "name", "bytes", "nodes"), rows, right=("tensor", "bytes"))
    if len(alive) > _SHOWN_TENSORS:
        out.print(f"  and {plural(len(alive) - _SHOWN_TENSORS, 'smaller tensor')}")


def _print_micro(out: Console, estimate: ArenaEstimate) -> None:
    heading(out, "TensorFlow Lite Micro")
    rows = [
        ("tensors and scratch buffers (head)", estimate.head_bytes, "exact"),
        ("variables and structures (tail)", estimate.tail_bytes, "estimated"),
        ("arena", estimate.total_bytes, f"+- {estimate.uncertainty_bytes}"),
    ]
    print_table(out, ("part", "bytes", ""), rows, right=("bytes",))
    if estimate.unknown_operators:
        out.print(f"  scratch memory unknown: {', '.join(estimate.unknown_operators)}")
