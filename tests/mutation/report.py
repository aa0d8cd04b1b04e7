"""The report of campaigns: survivors, explanations that are no longer so, a table of modules."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mutation.campaign import Verdicts
from mutation.mutants import Mutant


@dataclass
class Row:
    """Counts of the mutants of one module, by verdict.

    Attributes:
        mutants: all that there are.
        judged: those of them that have a verdict; the others wait or were not in the sample.
        explained: survivors that nothing can kill, with the reason.
        survivors: the others, each as line, name and outcome.
        outdated: explanations whose mutant is gone, or is killed.
    """

    module: str
    mutants: int = 0
    judged: int = 0
    killed: int = 0
    explained: dict[str, str] = field(default_factory=dict)
    survivors: list[tuple[int, str, str]] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)

    @property
    def percent(self) -> float:
        """Percentage of killed mutants among those judged and not explained.

        100 if there are none.
        """
        return _percent(self.killed, self.judged - len(self.explained))


def row(
    module: str, mutants: Sequence[Mutant], verdicts: Verdicts, explained: Mapping[str, str]
) -> Row:
    """Return the row of one module."""
    result = Row(module, mutants=len(mutants))
    for mutant in mutants:
        verdict = verdicts.of(mutant)
        result.judged += verdict is not None
        if verdict is None:
            continue
        if verdict.outcome == "killed":
            result.killed += 1
            if mutant.name in explained:
                result.outdated.append(f"{mutant.name} (killed by {verdict.by})")
        elif mutant.name in explained:
            result.explained[mutant.name] = explained[mutant.name]
        else:
            result.survivors.append((mutant.lines.start, mutant.name, verdict.outcome))
    names = {mutant.name for mutant in mutants}
    result.outdated += [f"{name} (gone)" for name in explained if name not in names]
    return result


def text(rows: Sequence[Row]) -> str:
    """Return the report as text: first the survivors, then the table."""
    lines = []
    for row in rows:
        lines += [
            f"{row.module}:{line}: {name} ({outcome})" for line, name, outcome in row.survivors
        ]
        lines += [f"{row.module}: no longer so: {name}" for name in row.outdated]
    width = max(map(len, (row.module for row in rows)), default=0)
    lines += ["", f"{'module':{width}}  mutants  judged  killed  explained  percent"]
    lines += [
        f"{row.module:{width}}  {row.mutants:7}  {row.judged:6}  {row.killed:6}  "
        f"{len(row.explained):9}  {row.percent:7.1f}"
        for row in rows
        if row.mutants
    ]
    return "\n".join(lines)


def percent_of(rows: Sequence[Row]) -> float:
    """Return the percentage of killed mutants of all rows together."""
    judged = sum(row.judged - len(row.explained) for row in rows)
    return _percent(sum(row.killed for row in rows), judged)


def write_json(rows: Sequence[Row], path: Path) -> None:
    """Write the content of the report, and the explanations of survivors."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shown = [{**asdict(row), "percent": round(row.percent, 1)} for row in rows]
    path.write_text(json.dumps(shown, indent=1), encoding="utf-8")


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 100.0
