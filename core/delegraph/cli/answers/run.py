"""Prints the result of ``delegraph run``, as JSON or as text."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delegraph.cli.answers.printing import (
    heading,
    print_paragraph,
    print_table,
    print_title,
    shortened,
    signature_text,
)
from delegraph.cli.answers.run_findings import has_findings, print_findings
from delegraph.errors import printable
from delegraph.json_records import to_json
from delegraph.quantities import duration, real_value

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph import Placement
    from delegraph.delegation.incident import Incident
    from delegraph.operators.numerics import Numerics
    from delegraph.tools.given_inputs import GivenInput
    from delegraph.tools.model_outputs import OutputSummary
    from delegraph.tools.recognition.findings import Findings


_LEAST_ROOM = 12
"""Least number of columns for the values of an output."""


@dataclass(frozen=True)
class RunAnswer:
    """Result of ``delegraph run``.

    Attributes:
        model: path of the model.
        signature: name of the called signature; None means the first subgraph.
        signatures: mapping from each signature of the model to its subgraph's index.
        numerics: ``builtin`` or ``reference``: the official kernels whose rounding is followed.
        inputs: values given to each input.
        outputs: summary of each output.
        findings: objects recognized in a picture.
        picture_size: width and height of the part of the user's picture that the model got; None if
            no input is a picture.
        is_cut: whether the model got only a part of the picture.
        saved: path of the file with all outputs; None if no file is written.
        drawn: path of the file with the findings drawn on the picture; None if no file is written.
        drawn_scale: pixels of that file for one of the picture, each way; None without the file.
        placement: delegate or kernel of each node.
        incidents: failures of delegates after which the run went on.
        allocate: milliseconds of allocation; None for a signature, whose calls allocate.
        invokes: milliseconds of each invoke.
    """

    model: str
    signature: str | None
    signatures: Mapping[str, int]
    numerics: Numerics
    inputs: list[GivenInput]
    outputs: list[OutputSummary]
    findings: Findings
    picture_size: tuple[int, int] | None
    is_cut: bool
    saved: str | None
    drawn: str | None
    drawn_scale: int | None
    placement: Placement
    incidents: tuple[Incident, ...]
    allocate: float | None
    invokes: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the result as dictionaries and lists for JSON."""
        allocate = {} if self.allocate is None else {"allocate": self.allocate}
        return {
            "model": self.model,
            "signature": self.signature,
            "numerics": self.numerics,
            "inputs": [_input(given) for given in self.inputs],
            "outputs": to_json(self.outputs),
            **self.findings.to_json(),
            "saved": self.saved,
            "drawn": self.drawn,
            "drawn_scale": self.drawn_scale,
            "placement": self.placement.to_json(),
            "incidents": to_json(self.incidents),
            "milliseconds": {
                **allocate,
                "invoke": statistics.median(self.invokes),
                "invokes": list(self.invokes),
            },
        }


def _input(given: GivenInput) -> dict[str, Any]:
    array = given.values
    return {
        "name": given.details["name"],
        "index": int(given.details["index"]),
        "dtype": "string" if array.dtype.kind == "O" else array.dtype.name,
        "shape": list(array.shape),
        "value": given.source,
        "notes": list(given.notes),
    }


def print_answer(out: Console, answer: RunAnswer) -> None:
    """Print inputs, outputs and times of a run."""
    print_title(out, answer.model)
    print_paragraph(out, str(answer.placement))
    if called := _called(answer):
        print_paragraph(out, called)
    if answer.numerics != "builtin":
        out.print(f"  numerics: {answer.numerics}")
    heading(out, "Inputs")
    inputs = [_input(given) for given in answer.inputs]
    columns = ("name", "type", "shape", "value")
    print_table(out, columns, [(i["name"], i["dtype"], i["shape"], i["value"]) for i in inputs])
    _print_notes(out, answer.inputs)
    brief = [output for output in answer.outputs if not output.top]
    if brief:
        _print_outputs(out, brief, answer.findings)
    for output in answer.outputs:
        if output.top:
            _print_classes(out, output)
        elif output.threshold is not None:
            text = f"  {output.name}: no class has a score of at least {output.threshold:g}"
            out.print(printable(text))
    print_findings(out, answer.findings, answer.picture_size, answer.is_cut)
    out.print()
    if answer.saved is not None:
        out.print(f"outputs saved to {answer.saved}")
    if answer.drawn is not None:
        is_enlarged = (answer.drawn_scale or 1) > 1
        enlarged = f", {answer.drawn_scale} times as wide and high" if is_enlarged else ""
        out.print(f"picture drawn to {answer.drawn}{enlarged}")
    out.print(_times(answer))


def _called(answer: RunAnswer) -> str:
    """Text that names the signature that ran, and the other signatures.

    It is empty if the user named no signature and the model has fewer than two.
    """
    if answer.signature is None and len(answer.signatures) < 2:
        return ""
    first = next((name for name, subgraph in answer.signatures.items() if subgraph == 0), None)
    called = first if answer.signature is None else answer.signature
    if called is None:
        return f"the first subgraph; --signature runs one of: {', '.join(answer.signatures)}"
    return signature_text(called, answer.signatures)


def _print_notes(out: Console, inputs: Sequence[GivenInput]) -> None:
    """Print each note once; if there are several inputs, with the names of those concerned."""
    about: dict[tuple[str, ...], list[str]] = {}
    for given in inputs:
        if given.notes:
            about.setdefault(given.notes, []).append(given.details["name"])
    for notes, names in about.items():
        whose = f"{', '.join(map(shortened, names))}: " if len(inputs) > 1 else ""
        print_paragraph(out, f"{whose}{'; '.join(notes)}")


def _print_outputs(out: Console, outputs: Sequence[OutputSummary], findings: Findings) -> None:
    """Print outputs as a table, with as many values as fit on one line."""
    heading(out, "Outputs")
    columns = ("name", "type", "shape", "range", "values")
    facts = [(shortened(o.name), o.dtype, str(list(o.shape)), _range(o)) for o in outputs]
    taken = sum(max(map(len, cells)) + 2 for cells in zip(columns[:-1], *facts, strict=True))
    room = max(_LEAST_ROOM, out.width - 2 - taken)
    shown = findings.tensors if has_findings(findings) else ()
    rows = [
        (*fact, "shown below" if o.index in shown else _first(o, room))
        for fact, o in zip(facts, outputs, strict=True)
    ]
    print_table(out, columns, rows, names=() if taken + _LEAST_ROOM < out.width else ("name",))
    for output in outputs:
        if output.scale is not None and output.index not in shown:
            whose = f"{shortened(output.name)}: " if len(outputs) > 1 else ""
            print_paragraph(out, f"{whose}{real_value(output.scale, output.zero_point or 0)}")


def _times(answer: RunAnswer) -> str:
    """Return a text with the times of allocation and of invoke (the median of several)."""
    allocate = "" if answer.allocate is None else f"allocate {duration(answer.allocate / 1e3)}, "
    times = [time / 1e3 for time in answer.invokes]
    invoke = f"invoke {duration(statistics.median(times))}"
    if len(times) == 1:
        return allocate + invoke
    ends = f"{duration(min(times))} to {duration(max(times))}"
    return f"{allocate}{invoke} (median of {len(times)}, {ends})"


def _print_classes(out: Console, output: OutputSummary) -> None:
    heading(
        out,
        f"Output {shortened(output.name)!r}, {output.dtype} {list(output.shape)}: best classes",
    )
    labelled = any(score.label is not None for score in output.top)
    rows = [
        (f"{score.score:.6g}", score.index, *((score.label or "",) if labelled else ()))
        for score in output.top
    ]
    columns = ("score", "class", *(("label",) if labelled else ()))
    print_table(out, columns, rows, right=("score", "class"))


def _range(output: OutputSummary) -> str:
    nan = f"{output.nan_count} NaN" if output.nan_count else ""
    if output.minimum is None or output.maximum is None or output.minimum == output.maximum:
        return nan
    return ", ".join(filter(None, (f"{output.minimum:.6g} to {output.maximum:.6g}", nan)))


def _first(output: OutputSummary, room: int) -> str:
    """Return the first values of an output, at least one, as many as fit into *room* characters."""
    words = [_number(value) for value in output.first]
    has_more = math.prod(output.shape) > len(words)
    text = ", ".join([*words, *(["..."] * has_more)])
    while len(text) > room and len(words) > 1:
        words.pop()
        text = ", ".join([*words, "..."])
    return text


def _number(value: Any) -> str:
    return f"{value:.7g}" if isinstance(value, float) else repr(value)
