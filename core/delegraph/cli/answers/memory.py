"""Prints the result of ``delegraph memory``: sizes, a chart over time, and suggestions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph.cli.answers.arena_chart import arena_chart
from delegraph.cli.answers.memory_answer import AS_IT_RUNS, CORE_ALONE, MemoryAnswer
from delegraph.cli.answers.micro_arena import print_micro
from delegraph.cli.answers.printing import heading, print_paragraph, print_table, print_title
from delegraph.quantities import percent, plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.memory_peak import Peak
    from delegraph.tools.memory_planners import PlannerResult
    from delegraph.tools.memory_report import MemoryReport

_SHOWN_TENSORS = 8
_FEW_TENSORS = 4
"""Largest number of tensors of a plan of which one size is enough beside that of the core alone."""

_ROOM_FOR_TIMES = 72
"""Width in columns from which on the times of planning are shown."""


def print_memory(out: Console, model: str, answer: MemoryAnswer) -> None:
    """Print TFLM's estimate, sizes by planner, the chart, the peak, and suggestions."""
    print_title(out, model)
    count = 1 if answer.estimate is not None else len(answer.subject.arenas)
    arenas = "an arena" if count == 1 else f"{count} arenas, together"
    print_paragraph(out, f"needs {arenas} of {answer.needed_text} ({answer.planned_by})")
    if answer.offline_plan:
        follows = "" if answer.estimate is not None else "; only TFLM follows it (--micro)"
        print_paragraph(out, f"a memory plan is in the model: {answer.offline_plan}{follows}")
    if answer.estimate is not None:
        print_micro(out, answer.estimate)
    if not answer.is_planned:
        print_paragraph(out, "no other planner is shown: Delegraph cannot run the model")
        return
    report = answer.subject
    if report.unknown:
        print_paragraph(out, f"not all is counted: {report.unknown}")
    constants = sum(arena.constant_bytes for arena in report.arenas)
    if answer.estimate is None:
        if constants:
            print_paragraph(out, f"+ {constants:,} bytes of constants computed once")
        _print_sizes(out, answer)
        if report.others:
            _print_subgraphs(out, answer)
    _print_planners(out, answer)
    if answer.shown.peak is not None:
        _print_chart(out, answer)
        _print_peak(out, answer)
    _print_suggestions(out, answer)


def _print_subgraphs(out: Console, answer: MemoryAnswer) -> None:
    """Print the arena of each subgraph that runs, and of each signature if there are several."""
    arenas = answer.subject.arenas
    sizes = [arena.result_of(answer.planner_name).bytes for arena in arenas]
    heading(out, f"Subgraphs that run, bytes of their arenas by planner {answer.planner_name}")
    rows = [
        (arena.subgraph, arena.name or "-", ", ".join(arena.run_by), f"{count:,}")
        for arena, count in zip(arenas, sizes, strict=True)
    ]
    columns = ("subgraph", "name", "run by", "bytes")
    print_table(out, columns, [*rows, ("", "all", "", f"{sum(sizes):,}")], right=("bytes",))
    print_paragraph(out, "an interpreter keeps the arena of each subgraph that has run")
    keys = dict.fromkeys(key for arena in arenas for key in arena.signatures)
    if keys:
        pairs = list(zip(arenas, sizes, strict=True))
        told = [f"{key} {sum(n for a, n in pairs if key in a.signatures):,}" for key in keys]
        print_paragraph(out, f"bytes by signature, with what it calls: {', '.join(told)}")


def _print_sizes(out: Console, answer: MemoryAnswer) -> None:
    """Print the arena's size, with and without delegates if delegates run the model."""
    if answer.runs is None:
        report = answer.subject
        print_paragraph(
            out,
            f"{plural(_tensors(report), 'tensor')} in the arena, aligned to "
            f"{report.alignment} bytes; {_variables(report):,} bytes of variables beside it",
        )
    else:
        print_paragraph(out, str(answer.runs.placement))
        both = ((AS_IT_RUNS, answer.runs.report), (CORE_ALONE, answer.core))
        rows = [
            (
                name,
                _tensors(report),
                f"{report.totals[0].bytes:,}",
                f"{_variables(report):,}",
                f"{sum(arena.constant_bytes for arena in report.arenas):,}",
            )
            for name, report in both
            if report is not None
        ]
        columns = ("", "tensors", "arena", "variables", "constants")
        heading(out, "Bytes, with delegates and without")
        print_table(out, columns, rows, right=columns[1:])
        aligned = f"tensors are aligned to {answer.subject.alignment} bytes"
        if answer.owners:
            kept = f"+ memory of {answer.owners} inside the partitions, not counted"
            print_paragraph(out, f"{AS_IT_RUNS}: {kept}")
        print_paragraph(out, f"{CORE_ALONE}: without delegates; {aligned}")
        if any(report and any(a.constant_bytes for a in report.arenas) for _, report in both):
            print_paragraph(out, "constants: computed once, and kept beside the arena")


def _tensors(report: MemoryReport) -> int:
    return sum(len(arena.tensors) for arena in report.arenas)


def _variables(report: MemoryReport) -> int:
    return sum(arena.persistent_bytes for arena in report.arenas)


def _print_planners(out: Console, answer: MemoryAnswer) -> None:
    from delegraph.tools.memory_planners import IN_PLACE

    count = len(answer.subject.arenas)
    of = "the arena" if count == 1 else f"all {count} arenas"
    heading(out, f"Planners, bytes of {of}, aligned to {answer.subject.alignment}")
    reports = {AS_IT_RUNS: answer.runs_as, CORE_ALONE: answer.core}
    if answer.runs is None or answer.core is None:
        reports = {"bytes": answer.subject}
    sizes = {
        name: {} if report is None else report.bytes_by_planner
        for name, report in reports.items()
        if report is answer.subject or (report is not None and _tensors(report) > _FEW_TENSORS)
    }
    totals = answer.subject.totals
    least = min(result.bytes for result in totals)
    rows = [
        (
            result.planner,
            *(
                f"{found[result.planner]:,}" if result.planner in found else ""
                for found in sizes.values()
            ),
            f"{result.bound:,}",
            "least" if result.is_optimal and result.bytes == least else f"{result.ratio:.3f}",
            f"{result.milliseconds:.2f}",
        )
        for result in totals
    ]
    if len(rows) > 1 and len({row[1:-1] for row in rows}) == 1:
        rows = [("all", *rows[0][1:-1], f"{sum(r.milliseconds for r in totals):.2f}")]
    columns = ("planner", *sizes, "bound", "ratio", "ms")
    if out.width < _ROOM_FOR_TIMES:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    print_table(out, columns, rows, right=columns[1:])
    print_paragraph(
        out, "bound: no plan is smaller; ratio: arena / bound; least: equal, no row is smaller"
    )
    in_place = [r.planner for r in answer.subject.results if r.planner in IN_PLACE]
    if in_place:
        compute, keep, have = ("s", "s", "has") if len(in_place) == 1 else ("", "", "have")
        print_paragraph(
            out,
            f"{' and '.join(in_place)} compute{compute} in place and keep{keep} the model's "
            f"inputs, so {have} another bound",
        )
    kernels = sorted({name for arena in answer.subject.arenas for name in arena.not_counted})
    if "tflite" in in_place and kernels:
        names = ", ".join(kernels)
        print_paragraph(
            out,
            "tflite: LiteRT's own arena has also the temporaries that its kernels ask for, and may "
            f"be larger: {names}",
        )
    if len(reports) > 1:
        print_paragraph(out, f"bound, ratio and all below: {answer.subject_name}")


def _print_chart(out: Console, answer: MemoryAnswer) -> None:
    report = answer.shown
    start = report.start
    in_use = report.bytes_in_use(answer.chosen)[start:]
    top = max(in_use)
    plan = "" if report.is_by_node else " of the execution plan"
    units = f"each of {plural(len(in_use), report.unit)}{plan}, first to last"
    if start:
        last = start + len(in_use) - 1
        units = f"{report.unit}s {start} to {last}{plan}; earlier ones compute constants once"
    elif len(report.operators) == 1:
        units = f"the only {report.unit}{plan}"
    elif report.open_shape is not None:
        units = (
            f"each of the first {len(in_use)} of {plural(len(report.operators), report.unit)}{plan}"
        )
    by = f"by planner {answer.chosen.planner}"
    heading(out, f"Bytes in use {by} at {units}{answer.of_shown}")
    for line in arena_chart(in_use, top, (f"{top:,}", f"{top // 2:,}"), out.width - 2):
        out.print(f"  {line}", soft_wrap=True)


def _print_peak(out: Console, answer: MemoryAnswer) -> None:
    """Print the tensors that make the peak of the plan in the headline, kept inputs included."""
    report, result, peak = answer.shown, answer.chosen, answer.shown.peak_of(answer.chosen)
    assert peak is not None
    step = "" if report.is_by_node else f"step {peak.position} of the execution plan, "
    alive = [report.tensors[i] for i in peak.tensors]
    tensors = sum(tensor.bytes for tensor in alive)
    padded = f", aligned to {report.alignment}" if peak.bytes > tensors else ""
    most = "Most is in use" if report.open_shape is None else "Of these, most is in use"
    where = f"{step}{peak.where}{answer.of_shown}"
    heading(out, f"{most} at {where}: {peak.bytes:,} bytes{padded} (planner {result.planner})")
    lasts = report.last_positions(result)
    rows = [
        (t.index, t.name, f"{t.bytes:,}", f"{t.first}-{lasts[i]}")
        for i, t in list(zip(peak.tensors, alive, strict=True))[:_SHOWN_TENSORS]
    ]
    when = "in use at" if report.is_by_node else "in use at steps"
    print_table(out, ("tensor", "name", "bytes", when), rows, right=("tensor", "bytes"))
    if len(alive) > _SHOWN_TENSORS:
        out.print(f"  and {plural(len(alive) - _SHOWN_TENSORS, 'smaller tensor')}")
    _print_notes(out, report, result, peak, is_shared=tensors > peak.bytes)
    if answer.scratch_bytes > 0:
        more = f"{answer.scratch_bytes:,} bytes more for scratch buffers, which no planner here has"
        print_paragraph(out, f"TFLM's head needs {more}")


def _print_notes(
    out: Console, report: MemoryReport, result: PlannerResult, peak: Peak, *, is_shared: bool
) -> None:
    """Print what distinguishes the sum of the tensors at the peak, the peak, and the arena."""
    lasts = report.last_positions(result)
    if any(report.tensors[i].last < min(lasts[i], peak.position) for i in peak.tensors):
        print_paragraph(out, f"planner {result.planner} keeps inputs that no later node reads")
    if is_shared:
        print_paragraph(out, "some of these share bytes, because a node computes in place")
    if result.bytes > peak.bytes:
        gaps = result.bytes - peak.bytes
        print_paragraph(out, f"+ {gaps:,} bytes of gaps between tensors: {result.bytes:,} bytes")


def _print_suggestions(out: Console, answer: MemoryAnswer) -> None:
    if not answer.suggestions:
        return
    heading(out, "What would save memory, at most")
    whole = max(answer.needed, 1)
    rows = [
        (f"{s.saves:,}", percent(s.saves / whole, digits=0), s.text) for s in answer.suggestions
    ]
    print_table(out, ("bytes", "share", "what"), rows, right=("bytes", "share"))
