"""``delegraph diff``: how far a model's results are off, against Delegraph's kernels or others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.failure import CheckFailed
from delegraph.cli.options import diagnosis_options, json_option
from delegraph.cli.printing import console, heading, plural, print_json, print_table
from delegraph.cli.setup_options import changed_setup, setup_options
from delegraph.cli.shown_progress import shown_progress

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.delegation.tolerance import Tolerance
    from delegraph.tools.differing.difference import Difference, OutputDifference
    from delegraph.tools.differing.metrics import Spread
    from delegraph.tools.setup import Setup

_TOLERANCE = re.compile(r"(?:(.*)=)?([^=,]+)(?:,([^=,]+))?", re.DOTALL)


@click.command("diff")
@setup_options
@click.option(
    "--reference",
    metavar='"[MODEL] [OPTION]..."',
    help="What is right: the words that differ from this command's own, as in "
    '"--runtime litert -d none", "-d numba_cpu" or "other.tflite".  [default: Delegraph\'s '
    "kernels, without any delegate]",
)
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]VALUE",
    help="An input, as 'delegraph run' takes it, or a folder: one run for each of its files. What "
    "is not given is random.",
)
@click.option(
    "--distribution",
    type=click.Choice(["inference_diff", "benchmark", "run"]),
    default="inference_diff",
    show_default=True,
    help="How random values are spread: as inference_diff, benchmark_model or 'delegraph run' do.",
)
@click.option(
    "--runs",
    type=click.IntRange(1),
    help="Runs, each on values of its own.  [default: one a file of a folder; 1 where nothing is "
    "random; else 50]",
)
@click.option(
    "--warmup",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Invokes before the runs, on either side, which no time is taken of.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed of the first run's random values; each run after it has the next one.",
)
@click.option(
    "--sample-rate",
    type=click.IntRange(1_000, 768_000),
    metavar="HERTZ",
    help="Rate of the sounds that the model takes.  [default: what the metadata says; else 16000]",
)
@click.option(
    "--signature", metavar="NAME", help="Call this signature, its inputs and outputs by its names."
)
@click.option(
    "--tolerance",
    "tolerances",
    multiple=True,
    metavar="[OUTPUT=]ABSOLUTE[,RELATIVE]",
    help="Fail (exit code 1) where an element is further off than ABSOLUTE + RELATIVE * |right|, "
    "in stored values; for one output, or for all.",
)
@json_option
@diagnosis_options
def command(
    setup: Setup,
    reference: str | None,
    signature: str | None,
    warmup: int,
    tolerances: tuple[str, ...],
    as_json: bool,
    **feed: Any,
) -> None:
    """Compare a model's outputs in two set-ups, on the same inputs.

    The options name what is tested; --reference what it is compared with.
    """
    from delegraph.tools.differing.difference import diff
    from delegraph.tools.differing.input_runs import Feed

    right = None if reference is None else changed_setup(setup, reference, "--reference")
    with shown_progress() as progress:
        found = diff(
            setup,
            right,
            feed=Feed(**feed),
            signature=signature,
            warmup=warmup,
            tolerance=_tolerances(tolerances),
            progress=progress,
        )
    if as_json:
        print_json(found.to_json())
    else:
        print_difference(console(), found)
    if found.failures:
        raise CheckFailed(f"further off than the tolerance: {'; '.join(found.failures)}")


def _tolerances(words: tuple[str, ...]) -> dict[str, Tolerance] | None:
    """Return the tolerance of each output that is named; ``""`` for the others."""
    from delegraph.delegation.tolerance import Tolerance
    from delegraph.errors import ArgumentError

    found: dict[str, Tolerance] = {}
    for word in words:
        match = _TOLERANCE.fullmatch(word)
        try:
            if match is None:
                raise ValueError
            tolerance = Tolerance(absolute=float(match[2]), relative=float(match[3] or 0))
        except (ValueError, ArgumentError):
            raise click.BadParameter(
                f"{word!r}: expected [OUTPUT=]ABSOLUTE[,RELATIVE], numbers of at least 0",
                param_hint="--tolerance",
            ) from None
        found[match[1] or ""] = tolerance
    return found or None


def print_difference(out: Console, found: Difference) -> None:
    """Print how far two set-ups' results differ."""
    out.print(f"test:      {found.test}")
    out.print(f"           {found.test_placement}", style="dim")
    out.print(f"reference: {found.reference}")
    out.print(f"           {found.reference_placement}", style="dim")
    count = len(found.runs)
    first, last = found.runs[0], found.runs[-1]
    fed = first if first == last else f"{first} to {last}"
    out.print(f"{plural(count, 'run')}: {fed}")
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
    rows = [row for output in found.outputs for row in _rows(output)]
    print_table(out, columns, rows, right=columns[3:])
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
        [side, t.count, *map(_time, (t.mean, t.std, t.min, t.median, t.max))]
        for side, t in latencies.items()
    ]
    times = ("", "runs", "mean", "std", "min", "median", "max")
    print_table(out, times, rows, right=times[1:])


def _rows(output: OutputDifference) -> list[list[object]]:
    """Return a row for the stored values, and one for the numbers that they stand for."""
    units = [d.max_units for d in output.runs if d.max_units is not None]
    count = sum(d.count for d in output.runs)
    unequal = f"{sum(d.unequal for d in output.runs)} of {count}"
    kind = output.dtype
    if output.reference_dtype != kind:
        kind += f" / {output.reference_dtype}"
    rows: list[list[object]] = []
    for values, metrics in (("stored", output.raw()), ("real", output.real())):
        if metrics:
            is_ulp = values == "stored" and output.runs[0].unit == "ulp"
            ulp = number(max(units)) if is_ulp and units else ""
            rows.append([output.name, kind, values, *_numbers(metrics), ulp, unequal])
    return rows or [[output.name, kind, "", *[""] * 6, "cannot be compared"]]


def _numbers(metrics: dict[str, Spread]) -> list[str]:
    """Return what the table shows: the mean over the runs, and the worst of all else."""
    worst = {"max": "max", "p999": "max", "snr_db": "min", "cosine": "min"}
    shown = [number(getattr(metrics[name], end)) for name, end in worst.items()]
    return [number(metrics["mean"].avg), *shown]


def _print_worst(out: Console, output: OutputDifference, found: Difference) -> None:
    """Print where the greatest difference is, and what values are no numbers."""
    compared = output.worst.compared
    if compared is not None and compared.max > 0:
        out.print(
            f"  {output.name}: greatest difference at {list(compared.index)}: "
            f"{number(compared.found)}, expected {number(compared.expected)} "
            f"(run {output.worst_run + 1}: {found.runs[output.worst_run]})"
        )
    for what in ("nan", "infinite"):
        test, reference = (sum(getattr(d, what)[side] for d in output.runs) for side in (0, 1))
        if test or reference:
            label = "NaN" if what == "nan" else "infinite"
            out.print(f"  {output.name}: {test} {label} values, {reference} in the reference")


def number(value: float) -> str:
    """Return a number for people.

    >>> number(0.0), number(1.5e-7), number(float("inf"))
    ('0', '1.5e-07', 'inf')
    """
    return f"{value:.4g}"


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3f} ms"
