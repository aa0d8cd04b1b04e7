"""Prints the result of ``delegraph diff``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delegraph.cli.answers.printing import heading, print_paragraph, print_table
from delegraph.cli.answers.table_layout import wrapped
from delegraph.quantities import duration, plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.differing.cause import Cause
    from delegraph.tools.differing.difference import Difference, OutputDifference
    from delegraph.tools.differing.layers import LayerDifference, LayersDifference
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
    """Print whether outputs are equal, and how to find the node from which on they differ.

    Args:
        out: the terminal.
        verdict: the verdict to print.
        has_layers: whether layers were compared.
        has_tolerance: whether differences above a tolerance fail the command.
        is_one_setup: whether test and reference are equal set-ups.
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
    print_table(out, columns, rows, right=columns[3:], optional=less)
    for output in found.outputs:
        _print_worst(out, output, found)
        for remark in output.remarks:
            out.print(f"  {output.name}: {remark}")
    for side, names in (("test", found.only_in_test), ("reference", found.only_in_reference)):
        for name in names:
            out.print(f"  {name}: only the {side} has it")
    heading(out, "Latency")
    latencies = {"test": found.test_latency, "reference": found.reference_latency}
    rows = [
        [side, t.count, *map(duration, (t.mean, t.std, t.min, t.median, t.max))]
        for side, t in latencies.items()
    ]
    times: tuple[str, ...] = ("", "runs", "mean", "std", "min", "median", "max")
    if count == 1:
        times, rows = ("", "time"), [row[::2][:2] for row in rows]
    print_table(out, times, rows, right=times[1:], optional=(("min", "max"), ("std",)))


def print_side(out: Console, side: str, setup: Setup) -> None:
    """Print which set-up is the test or the reference."""
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
    units = [d.max_units for d in output.runs if d.max_units is not None]
    count = sum(d.count for d in output.runs)
    unequal = f"{sum(d.unequal for d in output.runs)} of {count}"
    kind = output.dtype
    if output.reference_dtype != kind:
        kind += f" / {output.reference_dtype}"
    rows: list[list[object]] = []
    are_equal = not any(d.unequal for d in output.runs)
    for values, metrics in (("stored", output.raw()), ("real", output.real())):
        if metrics and not (rows and are_equal):
            is_ulp = values == "stored" and output.runs[0].unit == "ulp"
            ulp = number(max(units)) if is_ulp and units else ""
            rows.append([output.name, kind, values, *_numbers(metrics), ulp, unequal])
    return rows or [[output.name, kind, "", *[""] * 6, "cannot be compared"]]


def _numbers(metrics: dict[str, Spread]) -> list[str]:
    """Return table texts of one output, by ``SHOWN``.

    Args:
        metrics: mean, deviation and extremes over runs of each metric.
    """
    from delegraph.tools.differing.difference import SHOWN

    return [number(getattr(metrics[name], part)) for name, part in SHOWN.items()]


def _print_worst(out: Console, output: OutputDifference, found: Difference) -> None:
    """Print the position of the largest difference, and the numbers of NaN and infinities."""
    compared = output.worst.compared
    if compared is not None and compared.max > 0:
        found_text, expected_text = different_numbers(compared.found, compared.expected)
        out.print(
            f"  {output.name}: greatest difference at {list(compared.index)}: "
            f"{found_text}, expected {expected_text} "
            f"(run {output.worst_run + 1}: {found.runs[output.worst_run]})"
        )
    for what in ("nan", "infinite"):
        test, reference = (sum(getattr(d, what)[side] for d in output.runs) for side in (0, 1))
        if test or reference:
            label = "NaN" if what == "nan" else "infinite"
            out.print(f"  {output.name}: {test} {label} values, {reference} in the reference")


def number(value: float) -> str:
    """Return a number as text with four digits.

    >>> number(0.0), number(1.5e-7), number(float("inf"))
    ('0', '1.5e-07', 'inf')
    """
    return f"{value:.4g}"


def different_numbers(one: float, other: float) -> tuple[str, str]:
    """Two numbers as texts with four digits, or with nine where four show no difference.

    >>> different_numbers(0.5, 0.25), different_numbers(0.53764, 0.53763998)
    (('0.5', '0.25'), ('0.53764', '0.53763998'))
    """
    if number(one) != number(other):
        return number(one), number(other)
    return f"{one:.9g}", f"{other:.9g}"


def print_cause(out: Console, cause: Cause) -> None:
    """Print the reason why outputs differ by more than the tolerance."""
    heading(out, "Cause")
    print_paragraph(out, str(cause))


def print_layers(out: Console, found: LayersDifference, *, worst_first: bool) -> None:
    """Print the differences of all tensors, and a line per reason for tensors without one."""
    heading(out, "Layers")
    for note in found.notes:
        out.print(f"  {note}")
    ways = ("drift", "dB", "same inputs", "dB")  # largest difference, and SNR
    columns = ("node", "operator", "name", "runs on", *ways, "note")
    host = "Delegraph" if found.test.runtime == "delegraph" else "LiteRT"
    shown = [x for x in (found.worst_first() if worst_first else found.layers) if _is_known(x)]
    rows = [
        [
            layer.node,
            layer.op,
            layer.name,
            layer.delegate or host,
            *_far(layer.drift),
            *_far(layer.same_inputs),
            layer.same_inputs_note,
        ]
        for layer in shown
    ]
    last = ("name",), ("runs on",)
    less = ("note",), ("dB",), *(last if any(x.delegate for x in shown) else last[::-1])
    print_table(out, columns, rows, right=("node", *ways), optional=less)
    _print_unknown(out, [layer for layer in found.layers if not _is_known(layer)], found)


def _is_known(layer: LayerDifference) -> bool:
    return layer.drift is not None or layer.same_inputs is not None


def _far(difference: OutputDifference | None) -> tuple[str, str]:
    """Return two table texts: the greatest difference, and the smallest SNR, over all runs.

    Args:
        difference: difference of a tensor; None if it could not be compared.
    """
    if difference is None or not difference.compared():
        return ("", "")
    return number(difference.compared()["max"].max), number(difference.signal()["snr_db"].min)


def _print_unknown(
    out: Console, layers: Sequence[LayerDifference], found: LayersDifference
) -> None:
    """Print which tensors could not be compared, and why."""
    from delegraph.delegation.placement import node_numbers

    reasons: dict[str, list[int]] = {}
    for layer in layers:
        reasons.setdefault(layer.drift_note, []).append(layer.node)
    for reason, nodes in reasons.items():
        many = "s" * (len(nodes) != 1)
        out.print(
            f"  {plural(len(nodes), 'tensor')} of node{many} {node_numbers(set(nodes))}: {reason}"
        )
    if found.inner == "boundaries" and any("inside" in reason for reason in reasons):
        out.print("  --inner exposed or --inner alone has delegates compute these, too.")
