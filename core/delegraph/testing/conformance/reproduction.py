"""Saves models that show a failure, with the command that reproduces it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np

from delegraph.schema.writer import write_model
from delegraph.testing.conformance.subject import Identity, Subject, is_file
from delegraph.testing.operator_case import OperatorCase


def explained(subject: Subject | Identity, case: OperatorCase, label: str) -> str:
    """Save the model of *case*; return message lines with a command that shows its placement.

    The command shows which nodes the delegate gets.
    """
    path = _saved(subject, case, label)
    return _lines(subject, case, path, ["delegraph", "explain", path])


def rerun(subject: Subject | Identity, case: OperatorCase, label: str) -> str:
    """Save model and inputs of *case*; return message lines with a command that runs the model."""
    path = _saved(subject, case, label)
    fed: list[str] = []
    for position, array in enumerate(case.steps[0]):
        if array.dtype.kind in "biufc":
            file = path.replace(".tflite", f".input{position}.npy")
            np.save(file, array)
            fed += ["--input", f"{position}={file}"]
    hint = "\n  without the delegate it prints the right result" if subject.address else ""
    if case.reference is not None:
        right = path.replace(".tflite", ".reference.tflite")
        Path(right).write_bytes(write_model(case.reference))
        hint = f"\n  right: {shlex.join(['delegraph', 'run', right, *fed])}"
    return _lines(subject, case, path, ["delegraph", "run", path, *fed]) + hint


def recompiled(subject: Subject | Identity, case: OperatorCase) -> str:
    """Save the model of *case*; return message lines with commands that compile and compare it."""
    path = _saved(subject, case, "ahead-of-time")
    compiled = path.replace(".tflite", ".compiled.tflite")
    command = ["delegraph", "compile", path, "--output", compiled]
    then = shlex.join(["delegraph", "diff", compiled, "--reference", path])
    return _lines(subject, case, path, command) + f"\n  then: {then}"


def _saved(subject: Subject | Identity, case: OperatorCase, label: str) -> str:
    subject.folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^\w.-]+", "_", f"{subject.name}-{case.op}-{label}")
    path = subject.folder / f"{stem}.tflite"
    path.write_bytes(case.model())
    return str(path)


def _lines(subject: Subject | Identity, case: OperatorCase, path: str, command: list[str]) -> str:
    if subject.address:
        option = "--delegate-file" if is_file(subject.address) else "--delegate"
        again = shlex.join([*command, option, subject.address])
    else:
        again = f"Interpreter({path!r}, delegates=[...]) with the delegate under test"
    return f"\n  model: {case}\n  saved: {path}\n  again: {again}"
