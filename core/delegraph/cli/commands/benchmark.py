"""``delegraph benchmark``: measures how long a model takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.benchmark import print_answer, print_since_then
from delegraph.cli.answers.benchmark_comparison import Against, against_options, print_comparison
from delegraph.cli.answers.op_profile import print_op_profile
from delegraph.cli.answers.printing import console, print_json
from delegraph.cli.answers.progress_bar import about, shown_progress
from delegraph.cli.answers.result_file import write_result
from delegraph.cli.failure import CheckFailed
from delegraph.cli.options.arguments import diagnosis_options, json_option
from delegraph.cli.options.inputs import input_request_options
from delegraph.cli.options.kinds import file_option
from delegraph.cli.options.op_profile import op_profile_options
from delegraph.cli.options.output_files import output_option
from delegraph.cli.options.run_control import run_control_options
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.setup import setup_options

if TYPE_CHECKING:
    from delegraph.cli.options.op_profile import ProfileRequest
    from delegraph.tools.benchmarking.earlier_result import SinceThen, Then
    from delegraph.tools.benchmarking.result import BenchmarkResult
    from delegraph.tools.benchmarking.run_control import RunControl
    from delegraph.tools.profiling.op_profile import OpProfile
    from delegraph.tools.requested_inputs import InputRequest
    from delegraph.tools.setup import Setup


@dataclass(frozen=True)
class BenchmarkRequest:
    """Parsed options of ``delegraph benchmark``."""

    setup: Setup
    inputs: InputRequest
    control: RunControl
    signature: str | None
    name: str
    save: str | None
    compare_with: str | None
    result_json: str | None
    against: Against | None
    same_within: float
    fail_above: float | None
    profile: ProfileRequest


_SAVE = "Save all figures to FILE.json, or the last outputs to FILE.npz."
_COMPARE = "Compare with a file of --save, as of another commit."


@click.command("benchmark", cls=SectionedCommand)
@setup_options
@against_options
@run_control_options
@input_request_options("benchmark")
@click.option("--signature", metavar="NAME", help="Call this signature, its inputs by its names.")
@click.option("--name", default="", help="Name of this benchmark in the result.")
@output_option("--save", "FILE", _SAVE, ".json", ".npz")
@file_option("--compare-with", _COMPARE, metavar="FILE.json")
@output_option(
    "--result-json", "FILE", "Write all figures, the time of every run, and the machine."
)
@op_profile_options
@json_option
@diagnosis_options
def command(as_json: bool, **options: Any) -> None:
    """Measure how long a model takes, and its memory.

    Run control, inputs and figures follow benchmark_model; docs/benchmark.md lists the option for
    each of its flags.

    Times are of computing alone: the inputs are copied before each run. Loading, applying delegates
    and allocating are measured separately, with the memory of each stage.

    With --against, MODEL and other set-ups take turns instead. The verdict on each other set-up
    says whether MODEL is faster, slower or the same, or the machine too noisy to tell.

    With --compare-with, the figures are put beside those of an earlier command.
    """
    request = BenchmarkRequest(**options)
    if request.against is not None:
        _compare(request, request.against, as_json)
        return
    if not request.control.runs and request.profile.is_any:
        raise click.UsageError("a profile needs runs: leave out --dry-run, or the profile options")
    if not request.control.runs and request.compare_with is not None:
        raise click.UsageError("a comparison needs runs: leave out --dry-run, or --compare-with")
    then = None if request.compare_with is None else _then(request.compare_with, request.setup)
    result = _measured(request, is_quiet=as_json)
    _write(request, result)
    profile = _profile(request)
    since = None if then is None else _since_then(result, then, request)
    if as_json:
        shown = {} if profile is None else {"op_profile": profile.to_json()}
        shown |= {} if since is None else {"compared_with": since.to_json()}
        print_json({**result.to_json(), **shown})
    else:
        print_answer(console(), result)
        if since is not None:
            print_since_then(console(), since)
        if profile is not None and result.latency is not None:
            print_op_profile(console(), profile, result.latency.median)
    limit = request.fail_above
    if since is not None and limit is not None and since.is_slower_than(limit / 100):
        raise CheckFailed(f"slower by more than {limit:g} % than {since.path}")


def _write(request: BenchmarkRequest, result: BenchmarkResult) -> None:
    """Write the figures to the requested files."""
    files = {"--result-json": request.result_json}
    if request.save is not None and _is_json(request.save):
        files["--save"] = request.save
    for option, path in files.items():
        if path is not None:
            write_result(path, result.to_json(), option)


def _is_json(path: str) -> bool:
    return path.lower().endswith(".json")


def _then(path: str, setup: Setup) -> Then:
    from delegraph.tools.benchmarking.earlier_result import read_result, require_same_model

    then = read_result(path)
    require_same_model(then, setup.model)
    return then


def _since_then(result: BenchmarkResult, then: Then, request: BenchmarkRequest) -> SinceThen:
    from delegraph.tools.benchmarking.earlier_result import since_then

    return since_then(result, then, same_within=request.same_within / 100)


def _compare(request: BenchmarkRequest, against: Against, as_json: bool) -> None:
    if not as_json:
        click.echo(against.duration())
    found = against.measured(request.inputs, request.signature)
    if request.result_json is not None:
        write_result(request.result_json, found.to_json(), "--result-json")
    if as_json:
        print_json(found.to_json())
    else:
        print_comparison(console(), found)
    against.check(found)


def _measured(request: BenchmarkRequest, *, is_quiet: bool) -> BenchmarkResult:
    """Return the result; unless *is_quiet*, print the estimated duration when it is known."""
    from delegraph.tools.benchmarking.benchmark import benchmark

    def told(seconds: float) -> None:
        if not is_quiet:
            again = ", and once more for the profile" if request.profile.is_any else ""
            click.echo(f"takes {about(seconds)}{again}")

    outputs = None if request.save is None or _is_json(request.save) else request.save
    with shown_progress() as progress:
        return benchmark(
            request.setup,
            request.inputs,
            request.control,
            signature=request.signature,
            name=request.name,
            save=outputs,
            progress=progress,
            on_estimate=told,
        )


def _profile(request: BenchmarkRequest) -> OpProfile | None:
    """Write the requested profile files; return the profile if it must be printed."""
    wanted = request.profile
    if not wanted.is_any:
        return None
    from delegraph.tools.profiling.op_profile import profile_of
    from delegraph.tools.profiling.recording import record

    with shown_progress() as progress:
        recording = record(
            request.setup,
            request.inputs,
            request.control,
            signature=request.signature,
            progress=progress,
        )
    wanted.write_files(recording)
    return profile_of(recording) if wanted.op_profile else None
