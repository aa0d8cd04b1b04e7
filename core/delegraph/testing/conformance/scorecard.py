"""The scorecard of a run: for each delegate, sections and a table of operators by types."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import Any

from delegraph.quantities import few_of, plural
from delegraph.testing.badge import Badge

SECTIONS = ("contract", "soundness", "numbers")
NOT_TRIED = "not tried"
OUTCOMES = {"passed": "passed", "failed": "failed", "skipped": "not applicable"}
"""Mapping from pytest's name of an outcome to the scorecard's name."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one check of one delegate.

    Attributes:
        delegate: name of the delegate.
        section: section of the scorecard, one of :data:`SECTIONS`.
        check: text that describes the check.
        outcome: ``passed``, ``failed``, ``not applicable`` or ``not tried``.
        message: text that says why the check failed, does not apply or was not tried.
        types: mapping from a type to the counts of right and of compared models,
            ``"right/compared"``; only for checks of an operator's numbers.
        sample: text that says how many models a shortened run has tried; empty for a full run.
    """

    delegate: str
    section: str
    check: str
    outcome: str
    message: str
    types: Mapping[str, str]
    sample: str = ""


@dataclass(frozen=True, slots=True)
class Scorecard:
    """The results of a run, in order."""

    results: tuple[Result, ...]

    @classmethod
    def of(cls, notes: Iterable[Mapping[str, Any]]) -> Scorecard:
        """Return the scorecard from *notes*, the records that tests of the kit have written."""
        return cls(
            tuple(
                Result(**{**note, "outcome": OUTCOMES.get(note["outcome"], note["outcome"])})
                for note in notes
            )
        )

    @property
    def delegates(self) -> tuple[str, ...]:
        """Names of the delegates, in the order of their first check."""
        return tuple(dict.fromkeys(result.delegate for result in self.results))

    def counts(self, delegate: str) -> dict[str, Counter[str]]:
        """Return, by section of the scorecard, the number of checks with each outcome."""
        found = {section: Counter[str]() for section in SECTIONS}
        for result in self.results:
            if result.delegate == delegate:
                found[result.section][result.outcome] += 1
        return found

    def operators(self, delegate: str) -> dict[str, Mapping[str, str]]:
        """Return, by operator and type, how many models were right, as ``"right/compared"``."""
        found = [r for r in self.results if r.delegate == delegate and r.types]
        return {result.check: result.types for result in found}

    def sample(self, delegate: str) -> str:
        """Return the description of a delegate's reduced effort; empty for the full effort."""
        return next((r.sample for r in self.results if r.delegate == delegate and r.sample), "")

    def text(self, width: int = 80) -> str:
        """Return the scorecard for a terminal of *width* columns: first lines of messages."""
        return "\n\n".join(self._text_of(delegate, width) for delegate in self.delegates)

    def markdown(self) -> str:
        """Return the scorecard as Markdown, with messages of failures at the end."""
        parts = ["# Conformance of delegates\n"]
        for delegate in self.delegates:
            parts.append(f"## {delegate}\n")
            if self.sample(delegate):
                parts.append(f"A sample: {self.sample(delegate)}.\n")
            parts.append(_markdown_table(self._section_rows(delegate)))
            operators = self._operator_rows(delegate)
            if len(operators) > 1:
                parts.append(_markdown_table(operators))
            parts += [_markdown_failure(result) for result in self._failures(delegate)]
        return "\n".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return the scorecard as dictionaries and lists for JSON."""
        return {
            "delegates": [
                {
                    "name": delegate,
                    "passed": not self._failures(delegate),
                    "sample": self.sample(delegate) or None,
                    "sections": {s: dict(c) for s, c in self.counts(delegate).items()},
                    "operators": {o: dict(t) for o, t in self.operators(delegate).items()},
                    "checks": [_check_json(r) for r in self.results if r.delegate == delegate],
                }
                for delegate in self.delegates
            ]
        }

    def badge(self) -> Badge:
        """Return a badge about all delegates of the run."""
        failed = sum(result.outcome == "failed" for result in self.results)
        if failed:
            return Badge(f"{failed} of {len(self.results)} checks failed", "failed")
        operators = len({operator for name in self.delegates for operator in self.operators(name)})
        message = f"{operators} operator{'' if operators == 1 else 's'}"
        is_sample = any(map(self.sample, self.delegates))
        return Badge(f"{message}, a sample", "sampled") if is_sample else Badge(message, "passed")

    def write(self, path: str) -> None:
        """Write the scorecard to a file: Markdown if the name ends in ``.md``, otherwise JSON."""
        if Path(path).suffix == ".md":
            content = self.markdown()
        else:
            content = json.dumps(self.to_json(), indent=1) + "\n"
        Path(path).write_text(content, encoding="utf-8")

    def _failures(self, delegate: str) -> list[Result]:
        return [r for r in self.results if r.delegate == delegate and r.outcome == "failed"]

    def _section_rows(self, delegate: str) -> list[Sequence[str]]:
        by_section = self.counts(delegate)
        is_whole = not any(counts[NOT_TRIED] for counts in by_section.values())
        columns = (*OUTCOMES.values(), *[NOT_TRIED] * (not is_whole))
        rows: list[Sequence[str]] = [("section", *columns)]
        for section, counts in by_section.items():
            rows.append((section, *(str(counts[column]) for column in columns)))
        return rows

    def _operator_rows(self, delegate: str) -> list[Sequence[str]]:
        table = self.operators(delegate)
        types = sorted({type for row in table.values() for type in row})
        rows: list[Sequence[str]] = [("models right", *types)]
        for operator, row in table.items():
            rows.append((operator, *(row.get(type, "-") for type in types)))
        return rows

    def _text_of(self, delegate: str, width: int) -> str:
        failures = self._failures(delegate)
        lines = [f"{delegate}: {self._verdict(delegate)}"]
        if self.sample(delegate):
            sample = f"a sample (--quick): {self.sample(delegate)}"
            lines += wrap(sample, width, initial_indent="  ", subsequent_indent="    ")
        for rows in (self._section_rows(delegate), self._operator_rows(delegate)):
            if len(rows) > 1:
                lines += ["", *_aligned(rows)]
        if failures:
            lines.append("")
            for line in chain.from_iterable(map(_failure_lines, _folded(failures))):
                indent = " " * (4 + len(line) - len(line.lstrip()))
                lines += wrap(line, width, subsequent_indent=indent)
        return "\n".join(lines)

    def _verdict(self, delegate: str) -> str:
        if self._failures(delegate):
            return "FAILED"
        numbers = self.counts(delegate)["numbers"]
        is_empty = numbers and not numbers["passed"]
        return "passed, but no number was checked" if is_empty else "passed"


def _folded(failures: Iterable[Result]) -> Iterable[list[Result]]:
    """Return lists of failures whose messages differ only in the check's name and in numbers."""
    found: dict[str, list[Result]] = {}
    for result in failures:
        words = result.message.partition("\n")[0].replace(result.check, "")
        found.setdefault(re.sub(r"[\d\[\], ]+", " ", words), []).append(result)
    return found.values()


def _failure_lines(equal: Sequence[Result]) -> Iterator[str]:
    """Yield the line of the first of *equal* failures, and one with the names of the others."""
    first, *others = equal
    message = first.message.partition("\n")[0]
    yield f"  {first.section}: {first.check}: {message}"
    if others:
        names = few_of([result.check for result in others])
        yield f"    the same in {plural(len(others), 'more check')}: {names}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  " + row[0].ljust(widths[0])
        + "".join("  " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]  # fmt: skip


def _markdown_table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    rule = "|---" + "|--:" * (len(rows[0]) - 1) + "|"
    return "\n".join([head, rule, *body]) + "\n"


def _markdown_failure(result: Result) -> str:
    return f"**{result.section}: {result.check}**\n\n```text\n{result.message}\n```\n"


def _check_json(result: Result) -> dict[str, Any]:
    """Return a check as a dictionary; the sample is a fact about the delegate."""
    return {name: value for name, value in asdict(result).items() if name != "sample"}
