"""``delegraph report``: writes a page that shows a model, its placement and measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import print_json, progress, size
from delegraph.cli.answers.progress_bar import shown_progress
from delegraph.cli.options.arguments import diagnosis_options, json_option
from delegraph.cli.options.inputs import inner_option, input_request_options
from delegraph.cli.options.kinds import number_option, seconds_option, switch_option
from delegraph.cli.options.output_files import OutputFile
from delegraph.cli.options.run_control import CONTROL_OPTIONS, run_control_options
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.setup import (
    against_option,
    changed_setup,
    setup_options,
    setups_against,
)
from delegraph.cli.options.without_effect import require_effect
from delegraph.errors import printable

if TYPE_CHECKING:
    from delegraph.tools.benchmarking.run_control import RunControl
    from delegraph.tools.differing.difference import Difference
    from delegraph.tools.differing.layer_difference import LayersDifference
    from delegraph.tools.differing.watched_side import Inner
    from delegraph.tools.progress import Progress
    from delegraph.tools.reporting.report import Report
    from delegraph.tools.requested_inputs import InputRequest
    from delegraph.tools.setup import Setup


_RANDOM_RUNS = 3
"""Number of runs of --diff on random inputs."""

_RUNS_BY_DEFAULT = f"{_RANDOM_RUNS}; 1 for given inputs"


@dataclass(frozen=True)
class ReportRequest:
    """Parsed options of ``delegraph report``."""

    setup: Setup
    output: str
    memory: bool
    benchmark: bool
    against: tuple[Setup, ...]
    beside: Setup | None
    seconds: float
    diff: bool
    reference: str | None
    inner: Inner | None
    diff_runs: int | None
    control: RunControl
    inputs: InputRequest
    signature: str | None


@click.command("report", cls=SectionedCommand)
@setup_options
@click.option(
    "-o",
    "--output",
    type=OutputFile(".html", ".htm"),
    metavar="FILE.html",
    default="report.html",
    show_default=True,
    help="File of the page.",
)
@click.option("--signature", metavar="NAME", help="Show this signature first, and measure it.")
@click.option(
    "--beside",
    metavar='"[OPTION]..."',
    help="Show another placement beside this one, as '-d numba_cpu'.",
)
@switch_option("--memory", "Show the arena over time, by every planner.")
@switch_option("--benchmark", "Show the time of the model and of each operator.")
@against_option("Measure another set-up")
@seconds_option("--seconds", "Total time for --against.", default=12.0, metavar=None)
@switch_option("--diff", "Compare every layer with the reference, and show it.")
@click.option(
    "--reference",
    metavar='"[OPTION]..."',
    help="Reference for --diff.  [default: Delegraph's kernels alone]",
)
@inner_option
@number_option("--diff-runs", "Runs for --diff, each random.", show_default=_RUNS_BY_DEFAULT)
@run_control_options
@input_request_options("benchmark")
@json_option
@diagnosis_options
def command(
    as_json: bool, setup: Setup, against: Sequence[str], beside: str | None, **options: Any
) -> None:
    """Write a page that shows a model.

    The page shows the graph, the delegate of each node, the reasons of rejections, and requested
    measurements. It is one file that loads nothing from the network: it can be mailed, kept beside
    a model or printed.
    """
    others = setups_against(setup, against)
    other = None if beside is None else changed_setup(setup, beside, "--beside")
    if other is not None and other.model != setup.model:
        text = f"--beside {beside!r} names another model: make a report of each model"
        raise click.UsageError(f"{text}, or compare them by 'delegraph diff'")
    request = ReportRequest(setup=setup, against=others, beside=other, **options)
    _require_use(request)
    made, output = _in_options(_report(request)), request.output
    made.save(output)
    if as_json:
        print_json({"report": output, **made.to_json()})
    else:
        lines = [made.data["summary"], *(f"  {line}" for line in made.data.get("problem", ()))]
        if len(made.data["signatures"]) > 1:
            lines += [f"  {each['name']}: {each['summary']}" for each in made.data["signatures"]]
        lines.append(f"written to {output}, {size(Path(output).stat().st_size)}")
        click.echo("\n".join(map(printable, lines)))


def _in_options(made: Report) -> Report:
    """Return the report, whose problem names options in place of Python arguments."""
    if "problem" not in made.data:
        return made
    from delegraph.cli.failure import with_options

    command = click.get_current_context().command
    problem = [with_options(line, command) for line in made.data["problem"]]
    return replace(made, data={**made.data, "problem": problem})


def _require_use(request: ReportRequest) -> None:
    """Check, before any measurement, that options have an effect."""
    if request.memory and request.setup.runtime != "delegraph":
        raise click.UsageError(
            "--memory needs --runtime delegraph: the official one does not tell its arena"
        )
    if not request.benchmark:
        require_effect(CONTROL_OPTIONS, "needs --benchmark")
    if not request.against:
        require_effect(("seconds",), "needs --against")
    if request.diff and request.signature is not None:
        raise click.UsageError("--diff compares the first subgraph: leave out --signature")
    if not request.diff:
        require_effect(("reference", "inner", "diff_runs"), "needs --diff")


def _report(request: ReportRequest) -> Report:
    from delegraph.tools.benchmarking.benchmark import benchmark
    from delegraph.tools.benchmarking.comparison import compare
    from delegraph.tools.benchmarking.run_control import DRY_RUN
    from delegraph.tools.profiling.op_profile import op_profile
    from delegraph.tools.reporting.report import report

    measured = profile = None
    with shown_progress() as told:
        if request.benchmark:
            measured = benchmark(
                request.setup,
                request.inputs,
                request.control,
                signature=request.signature,
                progress=told,
            )
            if request.control != DRY_RUN:
                profile = op_profile(
                    request.setup, request.inputs, signature=request.signature, progress=told
                )
        others = request.against
        compared = (
            compare(
                request.setup,
                others,
                request.inputs,
                signature=request.signature,
                seconds=request.seconds,
                progress=told,
            )
            if others
            else None
        )
        layers, difference = _differences(request, told) if request.diff else (None, None)
    with progress(f"making a report of {request.setup.model}"):
        return report(
            request.setup,
            beside=request.beside,
            memory=request.memory,
            benchmark=measured,
            profile=profile,
            comparison=compared,
            layers=layers,
            difference=difference,
            signature=request.signature,
        )


def _differences(request: ReportRequest, told: Progress) -> tuple[LayersDifference, Difference]:
    """Return the differences of all tensors, and those of the outputs of the unchanged model."""
    from delegraph.tools.differing.difference import diff
    from delegraph.tools.differing.layers import diff_layers
    from delegraph.tools.differing.numerics_profile import rounding

    words = request.reference
    right = None if words is None else changed_setup(request.setup, words, "--reference")
    layers = diff_layers(
        request.setup,
        right,
        inputs=request.inputs,
        inner=request.inner,
        runs=request.diff_runs,
        random_runs=_RANDOM_RUNS,
        tolerance=rounding,
        progress=told,
    )
    count = len(layers.runs)
    return layers, diff(request.setup, right, inputs=request.inputs, runs=count, progress=told)
