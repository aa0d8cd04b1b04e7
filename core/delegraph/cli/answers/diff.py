"""Prints the result of ``delegraph diff``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delegraph.cli.answers.printing import heading, print_omitted, print_paragraph, print_table
from delegraph.cli.answers.table_layout import shortened, wrapped
from delegraph.quantities import plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.differing.cause import Cause
    from delegraph.tools.differing.difference import Difference, OutputDifference
    from delegraph.tools.differing.layer_difference import LayerDifference, LayersDifference
    from delegraph.tools.differing.metrics import Spread
    from delegraph.tools.differing.verdict import Verdict
    from delegraph.tools.setup import Setup


_SIDE = len("reference: ")


def print_verdict(
    out: Console,
    verdict: Verdict,
    *,
    has_layers: bool,
    has_tolerance: bool,
    is_one_setup: bool = False,
) -> None:
    """Print whether outputs are equal, and if not, how to find the first differing node.

    *has_tolerance* tells whether differences above a tolerance fail the command; *is_one_setup*,
    whether test and reference are equal set-ups.
    """
    out.print(verdict.text, style="bold")
    if is_one_setup:
        text = "both sides are the same set-up: -d NAME changes the test, --reference the other"
        print_paragraph(out, text, indent=0)
    if verdict.word == "differs" and not has_layers:
        out.print("--layers finds the first node that differs", style="dim")
    if verdict.word == "differs" and not has_tolerance:
        out.print("exit code 0: without --tolerance no difference is a failure", style="dim")
    out.print()


def print_difference(out: Console, found: Difference) -> None:
    """Print how far two set-ups' results differ."""
    from delegraph.tools.differing.difference_texts import (
        ONE_TIME,
        alone_texts,
        latency_columns,
        output_facts,
    )

    print_side(out, "test", found.test)
    print_paragraph(out, str(found.test_placement), indent=_SIDE)
    print_side(out, "reference", found.reference)
    print_paragraph(out, str(found.reference_placement), indent=_SIDE)
    count = len(found.runs)
    first, last = found.runs[0], found.runs[-1]
    fed = first if first == last else f"{first} to {last}"
    out.print(f"{plural(count, 'run')}: {fed}")
    for note in found.notes:
        print_paragraph(out, f"note: {note}", indent=0)
    heading(out, "Outputs")
    columns = (
        "name",
        "type",
        "values",
        "mean",
        "max",
        "p99.9",
        "SNR dB",
        "cosine",
        "ULP",
        "unequal",
    )
    by_output = [_rows(output) for output in found.outputs]
    rows = [row for rows in by_output for row in rows]
    # Without the column, two rows of an output would contradict each other.
    values = () if any(len(rows) > 1 for rows in by_output) else ("values",)
    less = (("ULP", "cosine"), ("p99.9",), ("type", *values), ("mean",), ("SNR dB",))
    print_omitted(out, print_table(out, columns, rows, right=columns[3:], optional=less))
    for output in found.outputs:
        for fact in output_facts(output, found.runs):
            print_paragraph(out, f"{output.name}: {fact}")
    for text in alone_texts(found):
        print_paragraph(out, text)
    heading(out, "Latency")
    times, latencies = latency_columns(found)
    print_table(out, times, latencies, right=times[1:], optional=(("min", "max"), ("std",)))
    if count == 1:
        print_paragraph(out, ONE_TIME)


def print_side(out: Console, side: str, setup: Setup) -> None:
    """Print the set-up that is the test or the reference."""
    label, room = f"{side}:", max(1, out.width - _SIDE)
    lines = wrapped(str(setup), room)
    if max(map(len, lines)) > room:  # a file name that needs a line of its own
        out.print(label)
        label, lines = "", wrapped(str(setup), out.width - 2)
    for number, line in enumerate(lines):
        start = label if number == 0 else ""
        out.print(start.ljust(_SIDE if label else 2) + line, soft_wrap=True)


def _rows(output: OutputDifference) -> list[list[object]]:
    """Return a table row for stored values, and one for the real numbers of quantized values."""
    from delegraph.tools.differing.difference_texts import number, unequal_elements

    units = [d.max_units for d in output.runs if d.max_units is not None]
    unequal = unequal_elements(output)
    kind = output.dtype
    if output.reference_dtype != kind:
        kind += f" / {output.reference_dtype}"
    rows: list[list[object]] = []
    are_equal = not any(d.unequal for d in output.runs)
    for values, metrics in (("stored", output.raw()), ("real", output.real())):
        if metrics and not (rows and are_equal):
            is_ulp = values == "stored" and output.runs[0].unit == "ulp"
            ulp = number(max(units)) if is_ulp and units else ""
            numbers = _numbers(metrics)
            unknown = 0 if output.are_strings else 3 if output.are_labels else len(numbers)
            numbers[unknown:] = [""] * (len(numbers) - unknown)  # of labels, SNR and cosine
            rows.append([output.name, kind, values, *numbers, ulp, unequal])
    return rows or [[output.name, kind, "", *[""] * 6, "cannot be compared"]]


def _numbers(metrics: dict[str, Spread]) -> list[str]:
    """Return texts of one output's *metrics* over runs: the figures that ``SHOWN`` selects."""
    from delegraph.tools.differing.difference import SHOWN
    from delegraph.tools.differing.difference_texts import number

    return [number(getattr(metrics[name], part)) for name, part in SHOWN.items()]


def print_cause(out: Console, cause: Cause) -> None:
    """Print the reason why outputs differ by more than the tolerance."""
    heading(out, "Cause")
    print_paragraph(out, cause.in_words(shortened))


def print_layers(out: Console, found: LayersDifference, *, run: str, worst_first: bool) -> None:
    """Print the differences of all tensors, and a line per reason for tensors without one.

    *run* names the run of the layers; it is empty if they have all runs. The noisiest layer is
    first if *worst_first*.
    """
    from delegraph.tools.differing.difference_texts import (
        layer_figures,
        uncompared_layers,
    )

    heading(out, "Layers")
    if run:
        print_paragraph(out, run)
    for note in found.notes:
        print_paragraph(out, note)
    shown = found.shown(worst_first=worst_first)
    says_more = found.same_inputs_say_more
    columns = _layer_columns(out.width, has_same_inputs=says_more)
    usual = _layer_columns(_ALL_NOTES, has_same_inputs=says_more)
    if not any(layer.same_inputs_note for layer in shown):
        columns, usual = ([c for c in each if c != "note"] for each in (columns, usual))
    rows = [_layer_row(layer, found.host, columns) for layer in shown]
    print_table(out, columns, rows, right=_NUMBERS, names=("name", "runs on"))
    print_omitted(out, [column for column in usual if column not in columns])
    if shown:
        print_paragraph(out, layer_figures(found))
    for text in uncompared_layers(found):
        print_paragraph(out, text)


_NUMBERS = ("node", "drift", "drift dB", "same inputs", "same dB")


def _layer_columns(width: int, *, has_same_inputs: bool) -> list[str]:
    """Headings of the table of layers in a terminal of some characters, for any model."""
    columns = _LAYER_COLUMNS if has_same_inputs else _LAYER_COLUMNS[:_SAME_INPUTS]
    omitted: set[str] = set()
    if width < _ALL_NOTES:
        omitted |= {"note"}
    if width < _ALL_FIGURES:
        omitted |= {"runs on"}
    if width < _ALL_FIGURES and has_same_inputs:
        omitted |= {"drift dB"} if width >= _ALL_WAYS else {"drift", "same inputs"}
    return [column for column in columns if column not in omitted]


_LAYER_COLUMNS = ("node", "operator", "name", "runs on", *_NUMBERS[1:], "note")
_SAME_INPUTS = _LAYER_COLUMNS.index("same inputs")
_ALL_NOTES = 120
_ALL_FIGURES = 80
_ALL_WAYS = 66


def _layer_row(layer: LayerDifference, host: str, columns: Sequence[str]) -> list[object]:
    """Cells of a layer in *columns*.

    *host* is the name of the runtime that runs the test's nodes without a delegate.
    """
    cells: dict[str, object] = {"node": layer.node, "operator": layer.op, "name": layer.name}
    cells |= {"runs on": layer.delegate or host, "note": layer.same_inputs_note}
    cells["drift"], cells["drift dB"] = _far(layer.drift)
    cells["same inputs"], cells["same dB"] = _far(layer.same_inputs)
    return [cells[column] for column in columns]


def _far(difference: OutputDifference | None) -> tuple[str, str]:
    """Return two table texts: the greatest difference, and the smallest SNR, over all runs.

    Both are empty if the tensor could not be compared.
    """
    from delegraph.tools.differing.difference_texts import number

    if difference is None or not difference.compared():
        return ("", "")
    snr = "" if difference.are_labels else number(difference.signal()["snr_db"].min)
    return number(difference.compared()["max"].max), snr
