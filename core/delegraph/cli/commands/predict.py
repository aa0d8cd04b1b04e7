"""``delegraph predict``: runs a model on all rows of some data, in processes, into a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from delegraph.cli.answers.printing import console, heading, print_json, print_paragraph
from delegraph.cli.answers.progress_bar import shown_progress, with_time_left
from delegraph.cli.failure import CheckFailed
from delegraph.cli.options.arguments import diagnosis_options, json_option
from delegraph.cli.options.kinds import with_options_added
from delegraph.cli.options.output_files import OutputFile
from delegraph.cli.options.pictures import NAMES as PICTURE_OPTIONS
from delegraph.cli.options.pictures import picture_options
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.setup import setup_options
from delegraph.cli.options.without_effect import require_effect
from delegraph.errors import printable
from delegraph.quantities import plural, rate_text, real_value

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.scale.job import JobResult
    from delegraph.scale.predictor import Predictor
    from delegraph.scale.sources import Source
    from delegraph.tools.pictures import PictureOptions
    from delegraph.tools.setup import Setup

CAUSES_SHOWN = 10
"""Largest number of causes of bad rows in the summary; JSON has all, and every bad row."""


@dataclass(frozen=True)
class PredictRequest:
    """Parsed options of ``delegraph predict``."""

    setup: Setup
    data: str
    output: str
    signature: str | None
    input_columns: dict[str, str]
    output_columns: dict[str, str]
    batching: Any
    max_batch: int
    on_error: Any
    isolate_rows: bool
    row_timeout: float | None
    max_restarts: int
    processes: int | None
    resume: bool
    labels: str | None
    top: int
    real: bool
    picture: PictureOptions


def _renamings(
    ctx: click.Context, parameter: click.Parameter, words: Sequence[str]
) -> dict[str, str]:
    """Return a mapping from each name to its column, from texts ``NAME=COLUMN``."""
    columns: dict[str, str] = {}
    for word in words:
        name, _, column = word.partition("=")
        if not name or not column:
            raise click.BadParameter(f"{word!r}: expected NAME=COLUMN")
        if name in columns:
            raise click.BadParameter(f"{name!r} is given twice")
        columns[name] = column
    return columns


def _require_output(ctx: click.Context, parameter: click.Parameter, path: str) -> str:
    """Check, before long work, that the format of the output is known."""
    from delegraph.scale.outputs import output_format

    output_format(path)
    return path


_OPTIONS = (
    click.option(
        "-o",
        "--output",
        required=True,
        type=OutputFile(),
        callback=_require_output,
        metavar="FILE",
        help="Write the rows to .jsonl, .csv, .npz or .parquet.",
    ),
    click.option("--resume", is_flag=True, help="Continue an interrupted job."),
    click.option(
        "--labels",
        type=click.Path(exists=True, dir_okay=False),
        help="Names of the classes, one a line.  [default: the metadata's]",
    ),
    click.option(
        "--top",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="Best classes to write in place of scores.",
    ),
    click.option(
        "--real", is_flag=True, help="Write stored integers of quantized outputs as real values."
    ),
    click.option(
        "--processes",
        type=click.IntRange(1),
        help="Processes that compute.  [default: one a core]",
    ),
    click.option(
        "--max-batch",
        type=click.IntRange(1),
        default=32,
        show_default=True,
        help="Most rows of a call of the model.",
    ),
    click.option(
        "--batching",
        type=click.Choice(["auto", "resize", "pad", "rows"]),
        default="auto",
        show_default=True,
        help="How rows are computed.",
    ),
    click.option(
        "--on-error",
        type=click.Choice(["column", "drop", "raise"]),
        default="column",
        show_default=True,
        help="Treatment of bad rows.",
    ),
    click.option(
        "--isolate-rows",
        is_flag=True,
        help="Find rows that crash or hang, in further processes.",
    ),
    click.option(
        "--row-timeout",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="Longest call, with --isolate-rows.  [default: none]",
    ),
    click.option(
        "--max-restarts",
        type=click.IntRange(0),
        default=100,
        show_default=True,
        help="Restarts of a process, with --isolate-rows.",
    ),
    click.option("--signature", metavar="NAME", help="Call this signature, by its names."),
    click.option(
        "--input-column",
        "input_columns",
        multiple=True,
        metavar="INPUT=COLUMN",
        callback=_renamings,
        help="Take an input from a column, or from FIRST:LAST; repeatable.",
    ),
    click.option(
        "--output-column",
        "output_columns",
        multiple=True,
        metavar="OUTPUT=COLUMN",
        callback=_renamings,
        help="Write only these outputs, so named; repeatable.",
    ),
)


def _options(command: Any) -> Any:
    return with_options_added(command, _OPTIONS)


@click.command("predict", cls=SectionedCommand)
@setup_options
@click.argument("data", type=click.Path(exists=True, readable=True))
@_options
@picture_options
@json_option
@diagnosis_options
def command(as_json: bool, **options: Any) -> None:
    """Run a model on all rows of some data, into a file.

    DATA is a folder of pictures or .npy files, or a .npy, .npz, .parquet, .jsonl or .csv file with
    a column for each input. Consecutive columns of numbers are one input, too: --input-column
    INPUT=FIRST:LAST, or all columns. The output has the number of each row, the columns that are no
    inputs, and the outputs. With --top, --labels or labels in the model's metadata, a classifier's
    scores become the best classes, by name; outputs of --output-column stay as well.

    Finished parts are kept in the folder FILE.job. The summary has the causes of bad rows; the
    exit code is 1 if no row is good.
    """
    request = PredictRequest(**options)
    if not request.isolate_rows:
        require_effect(["row_timeout", "max_restarts"], "needs --isolate-rows")
    if request.picture.crop == "none":
        require_effect(["fraction"], "needs --crop square")
    try:
        result, source = _predicted(request)
    except KeyboardInterrupt:
        if os.path.isdir(f"{request.output}.job"):
            click.echo("finished rows are kept: --resume continues the job", err=True)
        raise
    if as_json:
        print_json(result.to_json() | _about(request.setup, source))
    else:
        _print(console(), request, result, source)
    if len(result.bad) == result.rows:
        row, reason = next(iter(result.bad.items()))
        raise CheckFailed(f"none of {plural(result.rows, 'row')} is good; row {row}: {reason}")


def _predicted(request: PredictRequest) -> tuple[JobResult, Source]:
    from delegraph.scale.job import predict

    with _predictor(request) as predictor:
        source = _source(request, predictor)
        labels, top = _classes(request, predictor)
        if not request.resume:
            _note_replaced(request.output)

        def tell(rows: int, bad: int) -> None:
            """Print how many rows an earlier job has computed, and how many were bad."""
            total = len(source)
            to_go = f"{total - rows:,} to go" if rows < total else "nothing to compute"
            text = f"resuming: {rows:,} of {_rows(total)} done ({bad:,} bad), {to_go}"
            click.echo(text if rows else "nothing to resume: a new job", err=True)
            if rows < total:
                _note_replaced(request.output)

        with shown_progress() as progress:
            result = predict(
                predictor,
                source,
                request.output,
                processes=request.processes,
                resume=request.resume,
                resumed_from=tell,
                top=top,
                labels=labels,
                real=request.real,
                progress=with_time_left(progress),
            )
    return result, source


def _note_replaced(output: str) -> None:
    """Print a note, before long work, if the output replaces a file."""
    if os.path.isfile(output):
        click.echo(
            f"note: {printable(output)} exists; it is replaced at the end if any row is good",
            err=True,
        )


def _classes(request: PredictRequest, predictor: Predictor) -> tuple[Sequence[str], int | None]:
    """Return the labels of classes, and how many best classes replace scores; None keeps them."""
    from delegraph.scale.classes import has_labels
    from delegraph.tools.evaluation.labelled_pictures import read_words

    labels = () if request.labels is None else read_words(request.labels)
    typed = click.get_current_context().get_parameter_source("top") is ParameterSource.COMMANDLINE
    return labels, request.top if labels or typed or has_labels(predictor) else None


def _predictor(request: PredictRequest) -> Predictor:
    from delegraph.scale.predictor import Predictor

    setup = request.setup
    return Predictor(
        replace(setup, threads=1) if setup.threads is None else setup,
        signature=request.signature,
        inputs=request.input_columns,
        outputs=request.output_columns or None,
        batching=request.batching,
        max_batch=request.max_batch,
        on_error=request.on_error,
        isolation="process" if request.isolate_rows else "none",
        timeout=request.row_timeout,
        max_restarts=request.max_restarts,
    )


def _source(request: PredictRequest, predictor: Predictor) -> Source:
    """Return the source of the data; pictures are prepared as in ``delegraph run``."""
    from delegraph.scale.opening import open_source
    from delegraph.tools.called_inputs import called_metadata

    inputs = predictor.input_columns()
    metadata = called_metadata(predictor.loaded_model(), predictor.signature)
    described = metadata.tensor(int(next(iter(inputs.values()))["index"]))
    source = open_source(request.data, inputs, described, request.picture)
    if not source.preparation:
        require_effect(PICTURE_OPTIONS, "needs a folder of pictures")
    return source


def _print(out: Console, request: PredictRequest, result: JobResult, source: Source) -> None:
    resumed = f", {result.resumed:,} of them in an earlier run" if result.resumed else ""
    bad = len(result.bad)
    good = f"{result.rows - bad:,} good, {bad:,} bad" if bad else "all good"
    written = f"{result.written:,} written to {result.output}"
    if bad == result.rows and not result.written and os.path.exists(result.output):
        written = f"{result.output} stays as it was"
    print_paragraph(out, f"{_rows(result.rows)}{resumed}: {good}; {written}", indent=0)
    if result.resumed < result.rows:
        how = {"rows": "one by one", "pad": "together, filled up"}.get(result.batching, "together")
        times = f"{result.seconds:.1f} s, of them {result.start_seconds:.1f} s to start"
        rate = f"{rate_text(result.rate)} rows a second then"
        print_paragraph(out, f"{times}; {rate}, {_processes(result.processes)}, rows {how}")
    print_paragraph(out, result.placement)
    if source.preparation:
        print_paragraph(out, f"Preprocessing: {source.preparation}")
    if source.note:
        print_paragraph(out, f"note: {source.note}")
    if source.skipped:
        from delegraph.scale.sources import skipped_files

        print_paragraph(out, skipped_files(source.skipped))
    for name, meaning in source.read_as().items():
        print_paragraph(out, f"{name}: {meaning}")
    for name, stored in result.stored_integers.items():
        text = real_value(stored.scale, stored.zero_point)
        print_paragraph(out, f"{name}: {text}; --real writes real values")
    for name, most in result.scores.items():
        text = f"seems to be scores of {most:,} classes; --top N or --labels FILE writes the best"
        print_paragraph(out, f"{name}: {text}")
    if result.incidents:
        failed = f"delegates failed {plural(result.incidents, 'time')}, and Delegraph went on"
        print_paragraph(out, failed)
    if result.lost_processes:
        print_paragraph(out, f"rows have ended {_processes(result.lost_processes)}")
    if not bad:
        return
    where = "left out" if request.on_error == "drop" else "reasons in the column 'error'"
    heading(out, _rows(bad, "bad row") + (f", {where}" if result.written else ""))
    for cause in result.causes[:CAUSES_SHOWN]:
        count = f"{_rows(cause.rows)}, such as " if cause.rows > 1 else ""
        name = source.name(cause.first)
        file = f" ({name})" if name not in cause.reason else ""
        print_paragraph(out, f"{count}row {cause.first}{file}: {cause.reason}")
    if len(result.causes) > CAUSES_SHOWN:
        out.print(f"  and {len(result.causes) - CAUSES_SHOWN} more causes, which --json has")


def _about(setup: Setup, source: Source) -> dict[str, Any]:
    """Return the parts of the set-up and of the source in the answer in JSON."""
    return {
        "setup": setup.to_json(),
        "skipped": dict(source.skipped),
        "preprocessing": source.preparation,
        "note": source.note,
        "read_as": source.read_as(),
    }


def _rows(count: int, noun: str = "row") -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _processes(count: int) -> str:
    return f"{count} process{'es' * (count != 1)}"
