"""Log file of a compiled model, in the format of the real compiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from delegraph_edgetpu.mapping import OperatorMapping

TARGET_LINE = "For Delegraph's simulated Edge TPU; a real one needs Google's edgetpu_compiler."
"""Line that names the devices for which the compiled model is made."""


def version_line() -> str:
    """Return name and version of this compiler, in a line like the real compiler's."""
    try:
        number = version("delegraph-edgetpu")
    except PackageNotFoundError:
        number = "of a source tree"
    return f"Edge TPU Compiler version {number} (delegraph-edgetpu, a stand-in)"


def log_text(source: str, name: str, operators: Sequence[OperatorMapping]) -> str:
    """Return the text of the log file: operators, their counts and their statuses."""
    lines = [
        version_line(),
        f"Input: {Path(source).name}",
        f"Output: {name}",
        TARGET_LINE,
        "",
        *operator_lines(operators),
        "",
        *reason_lines(operators),
    ]
    return "\n".join(lines).rstrip() + "\n"


def operator_lines(operators: Sequence[OperatorMapping]) -> list[str]:
    """Return the lines of the real compiler's table of *operators*: name, count, status."""
    counts = Counter((o.name, o.status.value) for o in operators)
    rows = (f"{name:<30} {count:<10} {status}" for (name, status), count in sorted(counts.items()))
    return [f"{'Operator':<30} {'Count':<10} Status", "", *rows]


def reason_lines(operators: Sequence[OperatorMapping]) -> list[str]:
    """Return a line for each reason why one of *operators* is on the CPU, with the remedy."""
    return [
        f"Node {operator.index} ({operator.name}): {reason}. Remedy: {reason.remedy}."
        for operator in operators
        for reason in operator.reasons
    ]
