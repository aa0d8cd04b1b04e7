"""Result of ``delegraph memory``: reports with and without delegates, and the needed bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delegraph import Placement
    from delegraph.micro.estimate import ArenaEstimate
    from delegraph.tools.memory_planners import PlannerResult
    from delegraph.tools.memory_report import MemoryReport
    from delegraph.tools.memory_suggestions import Suggestion

CORE_ALONE = "core alone"
AS_IT_RUNS = "as it runs"


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
        core: report without delegates; None if only delegates can run the model. If both are None,
            only TFLM runs it.
        is_named: whether the user named the delegates.
        planner: name of the requested planner, or ``all``.
        estimate: estimate of TFLM's arena; None if not requested.
        offline_saves: bytes of TFLM's arena that an offline plan saves; 0 without an estimate.
        offline_plan: the plan inside the model in words; empty if it has none.
    """

    runs: Applied | None
    core: MemoryReport | None
    is_named: bool
    planner: str
    estimate: ArenaEstimate | None
    offline_saves: int = 0
    offline_plan: str = ""

    @property
    def runs_as(self) -> MemoryReport:
        """Memory report of the model as it runs: with the delegates that it would get."""
        report = self.core if self.runs is None else self.runs.report
        assert report is not None, "only TFLM runs the model"
        return report

    @property
    def is_planned(self) -> bool:
        """Whether Delegraph runs the model, so that its planners planned it."""
        return self.runs is not None or self.core is not None

    @property
    def subject(self) -> MemoryReport:
        """Memory report from which the chart, bound, peak, suggestions, budget and plan are made.

        It is the report without delegates unless the user named some, because default delegates
        depend on the installation. TFLM runs no delegate, so beside its estimate none is applied.
        """
        return self.runs_as if self.is_named or self.core is None else self.core

    def name_of(self, report: MemoryReport) -> str:
        """Return the name of one of the two reports: ``as it runs`` or ``core alone``."""
        return CORE_ALONE if report is self.core else AS_IT_RUNS

    @property
    def subject_name(self) -> str:
        """Name of the report in :attr:`subject`: ``as it runs`` or ``core alone``."""
        return self.name_of(self.subject)

    @property
    def planner_name(self) -> str:
        """Name of the requested planner; else TFLM's if its arena is estimated, or the own one."""
        from delegraph.tools.memory_planners import OWN, TFLM  # lazy: the help needs no NumPy

        if self.planner != "all":
            return self.planner
        return OWN if self.estimate is None else TFLM

    @property
    def shown(self) -> MemoryReport:
        """Memory report of the subgraph with the largest arena, which chart and picture show."""
        return max(self.subject.arenas, key=lambda a: a.result_of(self.planner_name).bytes)

    @property
    def of_shown(self) -> str:
        """Words that name the shown subgraph; empty if only one runs."""
        named = f", subgraph {self.shown.subgraph}, which has the largest arena"
        return named if self.subject.others else ""

    @property
    def chosen(self) -> PlannerResult:
        """Result of the requested planner for the subgraph that is shown."""
        return self.shown.result_of(self.planner_name)

    @property
    def needed(self) -> int:
        """Number of bytes of all arenas together, which is compared with the budget."""
        if self.estimate is None:
            return self.subject.bytes_by_planner[self.planner_name]
        return self.estimate.total_bytes

    @property
    def scratch_bytes(self) -> int:
        """Number of bytes of TFLM's head that its kernels' scratch buffers add to the plan.

        It is 0 without an estimate, for other planners, and where the head differs in more: if a
        plan is in the model, several subgraphs run, or a shape is unknown.
        """
        from delegraph.tools.memory_planners import TFLM  # lazy: the help needs no NumPy

        differs = self.offline_plan or self.subject.others or self.subject.unknown
        if self.estimate is None or self.planner_name != TFLM or differs:
            return 0
        return self.estimate.head_bytes - self.chosen.bytes

    @property
    def planned_by(self) -> str:
        """Text saying what :attr:`needed` is the arena of."""
        if self.estimate is None:
            return f"{self.subject_name}, planner {self.planner_name}"
        lacks = self.estimate.unsupported_operators
        return f"{CORE_ALONE}, TFLM{', which cannot run it' if lacks else ''}"

    @property
    def unknown(self) -> str:
        """The reason why a run may need more than :attr:`needed`; empty if there is none."""
        if self.estimate is None:
            return self.subject.unknown
        lacks = self.estimate.unsupported_operators
        if lacks:
            return f"TFLM cannot run the model: it has no {', no '.join(lacks)}"
        if self.estimate.unknown_operators:
            return f"scratch memory unknown: {', '.join(self.estimate.unknown_operators)}"
        return self.subject.unknown if self.is_planned else ""

    @property
    def needed_text(self) -> str:
        """Number of needed bytes in words; only a least number if something is unknown."""
        return f"{'at least ' if self.unknown else ''}{self.needed:,} bytes"

    @property
    def uncertainty(self) -> int:
        """Number of bytes by which TFLM may need more than :attr:`needed`; 0 without an estimate.

        It is also 0 if something is unknown, because the needed bytes are then a least number.
        """
        return 0 if self.estimate is None or self.unknown else self.estimate.uncertainty_bytes

    @property
    def owners(self) -> str:
        """Names of the delegates that have partitions, whose memory no report counts."""
        found = () if self.runs is None else self.runs.placement.partitions
        return " and ".join(dict.fromkeys(partition.delegate for partition in found))

    @property
    def not_counted(self) -> str:
        """Words about the memory of named delegates, which :attr:`needed` lacks; empty if none."""
        if self.runs is None or self.subject is self.core or not self.owners:
            return ""
        return f"+ memory of {self.owners}, not counted"

    @cached_property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Suggestions that make the arena smaller."""
        from delegraph.tools.memory_suggestions import suggestions

        return suggestions(self.shown, self.chosen, self.offline_saves)
