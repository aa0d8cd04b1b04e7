"""Findings: told apart, saved with all that repeats them, read again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.testing.sweep.hosts import operator_names
from delegraph.testing.sweep.judging import Fault
from delegraph.testing.sweep.workers import Found
from fuzz.copies import Copy
from fuzz.targets import Target

KEPT = 40
"""Copies of one signature whose numbers are kept."""


@dataclass
class Finding:
    """Copies that probably show the same fault.

    Attributes:
        target: name of what they were tried on.
        copy: the first of them, or what it was reduced to.
        fault: what came of it.
        numbers: of the copies.
        count: how many.
        state: ``as found``, ``reduced``, ``not repeated`` when a new process runs it well, or
            ``of LiteRT alone``.
    """

    target: str
    copy: Copy
    fault: Fault
    numbers: list[int] = field(default_factory=list)
    count: int = 0
    state: str = "as found"

    @property
    def operators(self) -> str:
        """The operators of the model, sorted."""
        return "+".join(sorted(set(filter(None, operator_names(self.copy.content)))))

    @property
    def is_ours(self) -> bool:
        """Whether the finding is still considered a fault of Delegraph."""
        return self.state in ("as found", "reduced")

    @property
    def name(self) -> str:
        """Name for files."""
        words = f"{self.target}-{self.fault.kind}-{self.numbers[0] if self.numbers else 0}"
        return words.replace(" ", "-").replace("@", "-")

    def described(self) -> dict[str, Any]:
        """Return everything but the model, for JSON."""
        return {
            "target": self.target,
            "kind": self.fault.kind,
            "where": self.fault.where,
            "detail": self.fault.detail,
            "operators": self.operators,
            "origin": self.copy.origin,
            "feeding": self.copy.seed,
            "state": self.state,
            "count": self.count,
            "numbers": self.numbers,
            "reproduce": f"python tests/fuzz/run.py --reproduce {self.name}.tflite",
        }


class Findings:
    """The findings of a campaign, one for each signature: target, kind, place, first operator."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], Finding] = {}

    def add(self, target: Target, found: Found) -> Finding | None:
        """Count a copy; return its finding if its signature is new."""
        place = found.fault.where or found.case.origin.partition("+")[0]
        signature = (target.name, found.fault.kind, place)
        known = self._found.get(signature)
        is_new = known is None
        if known is None:
            known = self._found[signature] = Finding(target.name, found.case, found.fault)
        known.count += 1
        if len(known.numbers) < KEPT:
            known.numbers.append(found.number)
        return known if is_new else None

    def __iter__(self) -> Any:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    def merge(self) -> list[Finding]:
        """Return the findings; those with the same reduced model are merged."""
        merged: dict[tuple[str, ...], Finding] = {}
        for finding in self:
            key = (finding.target, finding.fault.kind, finding.fault.where, finding.operators)
            known = merged.setdefault(key, finding)
            if known is not finding:
                known.count += finding.count
                known.numbers += finding.numbers[: KEPT - len(known.numbers)]
        return sorted(merged.values(), key=lambda f: (f.target, f.fault.kind, -f.count))


def save(finding: Finding, folder: Path) -> Path:
    """Write the model, its inputs and the outcome; return the path of the model."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{finding.name}.tflite"
    path.write_bytes(finding.copy.content)
    described = json.dumps(finding.described(), indent=1)
    path.with_suffix(".json").write_text(described + "\n", encoding="utf-8")
    named = {
        f"invoke{i}_input{j}": array.astype("S") if array.dtype.hasobject else array
        for i, step in enumerate(finding.copy.steps)
        for j, array in enumerate(step)
    }
    np.savez(path.with_suffix(".npz"), **named)
    return path


def remove(findings: Iterable[Finding], folder: Path) -> None:
    """Remove the files of findings."""
    for finding in findings:
        for suffix in (".tflite", ".json", ".npz"):
            (folder / f"{finding.name}{suffix}").unlink(missing_ok=True)


def load(path: Path) -> tuple[str, Copy, dict[str, Any]]:
    """Return target, copy and description of a saved finding; other models are for the core."""
    content = path.read_bytes()
    described: dict[str, Any] = {}
    if path.with_suffix(".json").is_file():
        described = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    steps: list[list[NDArray[Any]]] = []
    if path.with_suffix(".npz").is_file():
        with np.load(path.with_suffix(".npz")) as arrays:
            for key in arrays.files:  # in the order in which they were written
                step = int(key.removeprefix("invoke").partition("_")[0])
                steps += [[] for _ in range(step + 1 - len(steps))]
                array = arrays[key]
                steps[step].append(array.astype(object) if array.dtype.kind == "S" else array)
    copy = Copy(content, described.get("feeding", 0), steps, described.get("origin", path.stem))
    return described.get("target", "core"), copy, described
