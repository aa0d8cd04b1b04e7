"""Prints the result of ``delegraph memory``: sizes, a chart over time, and suggestions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from delegraph.cli.answers.arena_chart import arena_chart
from delegraph.cli.answers.printing import heading, print_paragraph, print_table, print_title, size
from delegraph.quantities import percent, plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph import Placement
    from delegraph.micro.estimate import ArenaEstimate
    from delegraph.tools.memory_report import MemoryReport, PlannerResult
    from delegraph.tools.memory_suggestions import Suggestion

_SHOWN_TENSORS = 8
_FEW_TENSORS = 4
"""Largest number of tensors of a plan of which one size is enough beside that of the core alone."""

_ROOM_FOR_TIMES = 72
"""Width in columns from which on the times of planning are shown."""

_CORE_ALONE = "core alone"
_AS_IT_RUNS = "as it runs"


@dataclass(frozen=True)
class Applied:
    """Memory of a model with delegates applied, and the placement of its nodes."""

    report: MemoryReport
    placement: Placement


@dataclass
class MemoryAnswer:
    """Result of ``delegraph memory``.

    Attributes:
        runs: the model with its delegates; None if it runs on the core alone.
        core: report without delegates; None if only delegates can run the model.
        is_named: whether the user named the delegates.
        planner: name of the requested planner, or ``all``.
        estimate: estimate of TFLM's arena; None if not requested.
        offline_saves: bytes of TFLM's arena that an offline plan saves; 0 without an estimate.
    """

    runs: Applied | None
    core: MemoryReport | None
    is_named: bool
    planner: str
    estimate: ArenaEstimate | None
    offline_saves: int = 0

    @property
    def runs_as(self) -> MemoryReport:
        """Memory report of the model as it runs: with the delegates that it would get."""
        report = self.core if self.runs is None else self.runs.report
        assert report is not None
        return report

    @property
    def subject(self) -> MemoryReport:
        """Memory report from which the chart, bound, peak, suggestions, budget and plan are made.

        It is the report without delegates unless the user named some, because default delegates
        depend on the installation. TFLM runs no delegate, so its estimate goes with the core alone.
        """
        is_with_delegates = self.is_named and self.estimate is None
        return self.runs_as if is_with_delegates or self.core is None else self.core

    def name_of(self, report: MemoryReport) -> str:
        """Return the name of one of the two reports: ``as it runs`` or ``core alone``."""
        return _CORE_ALONE if report is self.core else _AS_IT_RUNS

    @property
    def subject_name(self) -> str:
        """Name of the report in :attr:`subject`: ``as it runs`` or ``core alone``."""
        return self.name_of(self.subject)

    @property
    def chosen(self) -> PlannerResult:
        """Result of the requested planner, or of the interpreter's own."""
        from delegraph.tools.memory_report import OWN  # lazy: the help needs no NumPy

        return self.subject.result_of(OWN if self.planner == "all" else self.planner)

    @property
    def needed(self) -> int:
        """Number of bytes of the arena, which is compared with the budget."""
        return self.chosen.bytes if self.estimate is None else self.estimate.total_bytes

    @property
    def planned_by(self) -> str:
        """Text saying what :attr:`needed` is the arena of."""
        if self.estimate is None:
            return f"{self.subject_name}, planner {self.chosen.planner}"
        lacks = self.estimate.unsupported_operators
        return f"{_CORE_ALONE}, TFLM{', which cannot run it' if lacks else ''}"

    @property
    def needed_text(self) -> str:
        """Number of needed bytes in words; only a least number if a shape is unknown."""
        return f"{'' if self.subject.is_complete else 'at least '}{self.needed:,} bytes"

    @cached_property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Suggestions that make the arena smaller."""
        from delegraph.tools.memory_suggestions import suggestions

        return suggestions(self.subject, self.offline_saves)


def print_memory(out: Console, model: str, answer: MemoryAnswer) -> None:
    """Print sizes by planner, the chart, the peak, suggestions, and TFLM's estimate."""
    report = answer.subject
    print_title(out, model)
    print_paragraph(out, f"needs an arena of {answer.needed_text} ({answer.planned_by})")
    if report.open_shape is not None:
        print_paragraph(out, f"later nodes are not counted: {report.open_shape}")
    if report.constant_bytes and answer.estimate is None:
        print_paragraph(out, f"+ {report.constant_bytes:,} bytes of constants computed once")
    _print_sizes(out, answer)
    _print_planners(out, answer)
    if report.peak is not None:
        _print_chart(out, answer)
        _print_peak(out, report)
    _print_suggestions(out, answer)
    if answer.estimate is not None:
        _print_micro(out, answer.estimate)


def _print_sizes(out: Console, answer: MemoryAnswer) -> None:
    """Print the arena's size, with and without delegates if delegates run the model."""
    if answer.runs is None:
        report = answer.subject
        print_paragraph(
            out,
            f"{plural(len(report.tensors), 'tensor')} in the arena, aligned to "
            f"{report.alignment} bytes; {report.persistent_bytes:,} bytes of variables beside it",
        )
    else:
        print_paragraph(out, str(answer.runs.placement))
        both = ((_AS_IT_RUNS, answer.runs.report), (_CORE_ALONE, answer.core))
        rows = [
            (
                name,
                len(report.tensors),
                f"{report.results[0].bytes:,}",
                f"{report.persistent_bytes:,}",
                f"{report.constant_bytes:,}",
            )
            for name, report in both
            if report is not None
        ]
        columns = ("", "tensors", "arena", "variables", "constants")
        heading(out, "Bytes, with delegates and without")
        print_table(out, columns, rows, right=columns[1:])
        owners = " and ".join(answer.runs.placement.delegates)
        kept = f"{_AS_IT_RUNS}: + memory of {owners} inside the partitions, not counted"
        aligned = f"tensors are aligned to {answer.subject.alignment} bytes"
        print_paragraph(out, kept)
        print_paragraph(out, f"{_CORE_ALONE}: without delegates; {aligned}")
        if any(report is not None and report.constant_bytes for _, report in both):
            print_paragraph(out, "constants: computed once, and kept beside the arena")


def _print_planners(out: Console, answer: MemoryAnswer) -> None:
    from delegraph.tools.memory_report import IN_PLACE

    heading(out, "Planners, bytes of the arena")
    reports = {_AS_IT_RUNS: answer.runs_as, _CORE_ALONE: answer.core}
    if answer.runs is None or answer.core is None:
        reports = {"bytes": answer.subject}
    sizes = {
        name: {} if report is None else {r.planner: r.bytes for r in report.results}
        for name, report in reports.items()
        if report is answer.subject or (report is not None and len(report.tensors) > _FEW_TENSORS)
    }
    least = min(result.bytes for result in answer.subject.results)
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
        for result in answer.subject.results
    ]
    if len(rows) > 1 and len({row[1:-1] for row in rows}) == 1:
        rows = [
            ("all", *rows[0][1:-1], f"{sum(r.milliseconds for r in answer.subject.results):.2f}")
        ]
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
    if "tflite" in in_place and answer.subject.not_counted:
        names = ", ".join(answer.subject.not_counted)
        print_paragraph(
            out,
            "tflite: LiteRT's own arena has also the temporaries that its kernels ask for, and may "
            f"be larger: {names}",
        )
    if len(reports) > 1:
        print_paragraph(out, f"bound, ratio and all below: {answer.subject_name}")


def _print_chart(out: Console, answer: MemoryAnswer) -> None:
    report = answer.subject
    in_use = report.bytes_in_use(answer.chosen)
    top = max(in_use)
    plan = "" if report.is_by_node else " of the execution plan"
    units = f"{plural(len(in_use), report.unit)}{plan}, first to last"
    if not report.is_complete:
        units = f"the first {len(in_use)} of {plural(len(report.operators), report.unit)}{plan}"
    heading(out, f"Bytes in use by planner {answer.chosen.planner} at each of {units}")
    for line in arena_chart(in_use, top, (size(top), size(top // 2)), out.width - 2):
        out.print(f"  {line}", soft_wrap=True)


def _print_peak(out: Console, report: MemoryReport) -> None:
    peak = report.peak
    assert peak is not None
    step = "" if report.is_by_node else f"step {peak.position} of the execution plan, "
    alive = [report.tensors[i] for i in peak.tensors]
    is_padded = peak.bytes != sum(tensor.bytes for tensor in alive)
    padded = f", aligned to {report.alignment}" if is_padded else ""
    most = "Most is in use" if report.is_complete else "Of these, most is in use"
    heading(out, f"{most} at {step}{peak.where}: {peak.bytes:,} bytes{padded}")
    rows = [
        (t.index, t.name, f"{t.bytes:,}", f"{t.first}-{t.last}") for t in alive[:_SHOWN_TENSORS]
    ]
    when = "in use at" if report.is_by_node else "in use at steps"
    print_table(out, ("tensor", "name", "bytes", when), rows, right=("tensor", "bytes"))
    if len(alive) > _SHOWN_TENSORS:
        out.print(f"  and {plural(len(alive) - _SHOWN_TENSORS, 'smaller tensor')}")


def _print_suggestions(out: Console, answer: MemoryAnswer) -> None:
    if not answer.suggestions:
        return
    heading(out, "What would save memory, at most")
    whole = max(answer.needed, answer.subject.bound, 1)
    rows = [
        (f"{s.saves:,}", percent(s.saves / whole, digits=0), s.text) for s in answer.suggestions
    ]
    print_table(out, ("bytes", "share", "what"), rows, right=("bytes", "share"))


def _print_micro(out: Console, estimate: ArenaEstimate) -> None:
    heading(out, "TensorFlow Lite Micro")
    lacks = estimate.unsupported_operators
    parts = [
        ("tensors and scratch buffers (head)", estimate.head_bytes, "exact"),
        ("variables and structures (tail)", estimate.tail_bytes, "estimated"),
        ("free, to plan in", estimate.free_bytes, "estimated"),
        ("arena", estimate.total_bytes, f"+- {estimate.uncertainty_bytes:,}"),
    ]
    rows = [
        (part, f"{count:,}", "none: see below" if lacks else accuracy)
        for part, count, accuracy in parts
        if count or part != "free, to plan in"
    ]
    print_table(out, ("part", "bytes", "accuracy"), rows, right=("bytes",))
    if lacks:
        print_paragraph(
            out,
            f"TFLM cannot run the model: it has no {', no '.join(lacks)}; the sizes are what it "
            "would need if it had",
        )
    if estimate.unknown_operators:
        out.print(f"  scratch memory unknown: {', '.join(estimate.unknown_operators)}")
