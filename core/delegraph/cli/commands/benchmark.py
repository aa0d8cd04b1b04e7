"""``delegraph benchmark``: measures how long a model takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.benchmark import print_answer
from delegraph.cli.answers.benchmark_comparison import Against, against_options, print_comparison
from delegraph.cli.answers.op_profile import print_op_profile
from delegraph.cli.answers.printing import console, print_json
from delegraph.cli.answers.progress_bar import shown_progress
from delegraph.cli.answers.result_file import write_result
from delegraph.cli.options.arguments import (
    diagnosis_options,
    json_option,
    require_folder,
    save_option,
)
from delegraph.cli.options.inputs import input_request_options
from delegraph.cli.options.op_profile import op_profile_options
from delegraph.cli.options.run_control import run_control_options
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.setup import setup_options

if TYPE_CHECKING:
    from delegraph.cli.options.op_profile import ProfileRequest
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
    result_json: str | None
    against: Against | None
    profile: ProfileRequest


@click.command("benchmark", cls=SectionedCommand)
@setup_options
@against_options
@run_control_options
@input_request_options("benchmark")
@click.option("--signature", metavar="NAME", help="Call this signature, its inputs by its names.")
@click.option("--name", default="", help="What to call this in the result.")
@save_option
@click.option(
    "--result-json",
    type=click.Path(dir_okay=False, writable=True),
    callback=require_folder,
    metavar="FILE",
    help="Write all figures, the time of every run, and the machine.",
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
    """
    request = BenchmarkRequest(**options)
    if request.against is not None:
        _compare(request, request.against, as_json)
        return
    if request.profile.is_any and not request.control.runs:
        raise click.UsageError("a profile needs runs: leave out --dry-run, or profiles")
    result = _measured(request)
    if request.result_json is not None:
        write_result(request.result_json, result.to_json(), "--result-json")
    profile = _profile(request)
    if as_json:
        shown = {} if profile is None else {"op_profile": profile.to_json()}
        print_json({**result.to_json(), **shown})
        return
    print_answer(console(), result)
    if profile is not None:
        print_op_profile(console(), profile)


def _compare(request: BenchmarkRequest, against: Against, as_json: bool) -> None:
    found = against.measured(request.inputs, request.signature)
    if request.result_json is not None:
        write_result(request.result_json, found.to_json(), "--result-json")
    if as_json:
        print_json(found.to_json())
    else:
        print_comparison(console(), found)
    against.check(found)


def _measured(request: BenchmarkRequest) -> BenchmarkResult:
    from delegraph.tools.benchmarking.benchmark import benchmark

    with shown_progress() as progress:
        return benchmark(
            request.setup,
            request.inputs,
            request.control,
            signature=request.signature,
            name=request.name,
            save=request.save,
            progress=progress,
        )


def _profile(request: BenchmarkRequest) -> OpProfile | None:
    """Write the requested profile files; return the profile if it is to be printed."""
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
