"""Findings: told apart, saved with all that repeats them, read again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.testing.sweep import findings as sweep_findings
from delegraph.testing.sweep.hosts import operator_names
from delegraph.testing.sweep.workers import Found
from fuzz.copies import Copy
from fuzz.targets import Target


@dataclass
class Finding(sweep_findings.Finding):
    """Copies that probably show the same fault; ``case`` is the first, or what it was reduced to.

    Attributes:
        target: name of what they were tried on.
    """

    target: str = ""

    @property
    def signature(self) -> tuple[str, ...]:
        """Target, kind and place of the fault; without a place, the model stands for it."""
        first, _, _ = self.case.origin.partition("+")
        model = self.operators if self.state == "reduced" else first
        return self.target, self.fault.kind, self.fault.where or model

    @property
    def order(self) -> tuple[str, str, int]:
        return self.target, self.fault.kind, -self.count

    @property
    def operators(self) -> str:
        """The operators of the model, sorted."""
        return "+".join(sorted(set(filter(None, operator_names(self.case.content)))))

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
            "origin": self.case.origin,
            "feeding": self.case.seed,
            "state": self.state,
            "count": self.count,
            "numbers": self.numbers,
            "reproduce": f"python tests/fuzz/run.py --reproduce {self.name}.tflite",
        }


def finding_of(target: Target, found: Found) -> Finding:
    """Return the finding of a faulty copy that was tried on *target*."""
    return Finding(found.case, found.fault, target=target.name)


def save(finding: Finding, folder: Path) -> Path:
    """Write the model, its inputs and the outcome; return the path of the model."""
    path = sweep_findings.save_case(finding, folder)
    described = json.dumps(finding.described(), indent=1)
    path.with_suffix(".json").write_text(described + "\n", encoding="utf-8")
    return path


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
