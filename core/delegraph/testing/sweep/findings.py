"""Findings of a sweep: faulty cases, grouped by signature and saved with files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from delegraph.errors import DelegraphError
from delegraph.schema.reader import read_model
from delegraph.testing.sweep.case_facts import fact_lines, input_facts, node_facts
from delegraph.testing.sweep.comparison import Comparison
from delegraph.testing.sweep.judging import Fault
from delegraph.testing.sweep.sweep_case import SweepCase, named_arrays

_LINE = re.compile(r":\d+( in |$)")
"""Pattern of a place that names a line, which is in the code of a delegate's author."""

_NUMBERS = re.compile(r"^\d+|s?(?=\W)[\d.,()\[\] -]+")
"""Pattern of numbers in a text with what is around them, and of a plural before them.

Digits of a word, such as ``INT16``, are none.
"""

KEPT = 40
"""Largest number of case numbers that are kept for a finding."""


@dataclass
class Finding:
    """Cases that show the same fault.

    Attributes:
        case: the first case, or the smaller one that it was shrunk to.
        fault: the fault of the case.
        numbers: numbers of the first :data:`KEPT` cases.
        count: number of all cases.
        state: ``as found``, ``shrunk``, or ``not repeated`` if a new process finds no fault.
    """

    case: SweepCase
    fault: Fault
    numbers: list[int] = field(default_factory=list)
    count: int = 0
    state: str = "as found"

    @property
    def signature(self) -> tuple[str, ...]:
        """Operators with types, and kind and cause of the fault; equal for a finding's cases.

        An error at a line of the delegate's author is equal for all operators. So are hangs at one
        place, because each repetition takes long.
        """
        fault = self.fault
        if fault.kind != "crash" and _LINE.search(fault.where):  # crashes at a line may differ
            return fault.kind, fault.where, _NUMBERS.sub(" ", fault.detail)
        is_placed_hang = fault.kind == "hang" and bool(fault.where)
        nodes = () if is_placed_hang else nodes_of(self.case.content)
        return (*nodes, fault.kind, _cause(fault))

    @property
    def order(self) -> tuple[str, str, int]:
        """Key that sorts findings."""
        return self.case.op, self.fault.kind, -self.count

    @property
    def name(self) -> str:
        """Name of the finding, used for its files."""
        return f"{self.case.op}-{self.fault.kind}-{self.numbers[0]}".replace(" ", "-")

    @property
    def model(self) -> str:
        """Operators of the model with the types of their inputs, such as ``ADD(INT16 INT16)``."""
        return " ".join(nodes_of(self.case.content)) or self.case.op

    def described(self, command: str) -> dict[str, Any]:
        """Return all fields except model and arrays, for JSON.

        Args:
            command: command line of the run, without the number of the case.
        """
        return {
            "operator": self.case.op,
            "model": self.model,
            "kind": self.fault.kind,
            "where": self.fault.where,
            "detail": self.fault.detail,
            "described": self.case.described,
            "nodes": node_facts(self.case.content),
            "inputs": input_facts(self.case),
            "threads": self.case.threads,
            "state": self.state,
            "count": self.count,
            "numbers": self.numbers,
            "reproduce": f"{command} --first {self.numbers[0]} --cases 1",
        }


class Findings:
    """Findings of a sweep, one for each signature."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], Finding] = {}

    def add(self, number: int, new: Finding) -> Finding | None:
        """Count *new*, found in case *number*; return it if its signature is new, else None."""
        known = self._found.setdefault(new.signature, new)
        known.count += 1
        if len(known.numbers) < KEPT:
            known.numbers.append(number)
        return known if known is new else None

    def __iter__(self) -> Any:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    def merged(self) -> list[Finding]:
        """Return the findings; findings with equal signatures after shrinking are merged."""
        found: dict[tuple[str, ...], Finding] = {}
        for finding in self:
            known = found.setdefault(finding.signature, finding)
            if known is not finding:
                known.count += finding.count
                known.numbers += finding.numbers[: KEPT - len(known.numbers)]
        return sorted(found.values(), key=lambda f: f.order)


def command_of(comparison: Comparison, seed: int, operators: tuple[str, ...] = ()) -> str:
    """Return the command that repeats a sweep, without ``--first`` and ``--cases``.

    *operators* are the requested operators; empty means all.
    """
    words = ["delegraph test-operators", comparison.delegate, f"--seed {seed}"]
    words += ["--runtime litert"] * (comparison.runtime == "litert")
    words += ["--default"] * comparison.by_default
    return " ".join([*words, *(f"--operator {op}" for op in operators)])


def save(finding: Finding, folder: Path, command: str) -> Path:
    """Write the model, its inputs and a text to *folder*; return the model's path.

    The text's first line ends with the case's *command*; others tell options and values.
    """
    path = save_case(finding, folder)
    line = "{model}: {kind}: {detail} [{reproduce}]".format_map(finding.described(command))
    text = "\n".join([line, *fact_lines(finding.case), ""])
    path.with_suffix(".txt").write_text(text, encoding="utf-8")
    return path


def save_case(finding: Finding, folder: Path) -> Path:
    """Write the model and its inputs to *folder*; return the model's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{finding.name}.tflite"
    path.write_bytes(finding.case.content)
    named: dict[str, Any] = {
        name: array.astype("S") if array.dtype.hasobject else array
        for name, array in named_arrays(finding.case.steps).items()
    }
    np.savez(path.with_suffix(".npz"), **named)
    return path


def remove(finding: Finding, folder: Path) -> None:
    """Remove the files of *finding* from *folder*."""
    for suffix in (".tflite", ".txt", ".json", ".npz"):
        (folder / f"{finding.name}{suffix}").unlink(missing_ok=True)


def nodes_of(content: bytes) -> tuple[str, ...]:
    """Return, for each node of the model file *content*, its operator with its input types."""
    try:
        model = read_model(np.frombuffer(content, np.uint8))
    except DelegraphError:
        return ()
    graph, codes = (model.subgraphs or ())[0], model.operator_codes or ()
    tensors, found = graph.tensors or (), []
    for node in graph.operators or ():
        code = codes[node.opcode_index]
        types = (tensors[i].type.name if i >= 0 else "-" for i in node.inputs or ())
        found.append(f"{code.custom_code or code.builtin_code.name}({' '.join(types)})")
    return tuple(found)


def _cause(fault: Fault) -> str:
    """Return the cause of a fault: its place in the source code, or its text without numbers."""
    if fault.kind == "differs":
        return re.sub(r"invoke \d+, output \d+: ([a-z]*).*", r"\1", fault.detail, flags=re.DOTALL)
    return fault.where or re.sub(r"[\d.,\[\] -]+", " ", fault.detail)[:80]
