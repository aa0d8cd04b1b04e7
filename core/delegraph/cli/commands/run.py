"""``delegraph run``: runs a model on given inputs, and prints its outputs.

Options that several commands have, and their checks, are in :mod:`delegraph.cli.options.arguments`
and :mod:`delegraph.cli.options.setup`.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from delegraph.cli.answers.printing import console, print_json, progress
from delegraph.cli.answers.run import RunAnswer, print_answer
from delegraph.cli.options.arguments import diagnosis_options, json_option
from delegraph.cli.options.inputs import input_option, sample_rate_option, seed_option
from delegraph.cli.options.kinds import file_option, number_option
from delegraph.cli.options.output_files import OutputFile, save_option
from delegraph.cli.options.pictures import NAMES as PICTURE_OPTIONS
from delegraph.cli.options.pictures import picture_options
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.setup import setup_options
from delegraph.cli.options.without_effect import require_effect
from delegraph.errors import UnresolvedOpError, printable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    from delegraph.graph.metadata import ModelMetadata
    from delegraph.graph.model import Model
    from delegraph.tools.given_inputs import GivenInput
    from delegraph.tools.model_call import Details
    from delegraph.tools.model_outputs import OutputSummary
    from delegraph.tools.pictures import PictureOptions
    from delegraph.tools.recognition.findings import Findings
    from delegraph.tools.setup import Setup


_NEEDS_PICTURE = "needs an input that is a picture: --input photo.jpg"


@dataclass(frozen=True)
class RunRequest:
    """Parsed options of ``delegraph run``."""

    setup: Setup
    inputs: tuple[str, ...]
    labels: tuple[str, ...]
    top: int
    threshold: float | None
    sample_rate: int | None
    picture: PictureOptions
    seed: int
    signature: str | None
    repeat: int
    save: str | None
    draw: str | None


def _require_drawable(
    ctx: click.Context, parameter: click.Parameter, path: str | None
) -> str | None:
    if path is not None:
        from delegraph.tools.recognition.drawing import require_drawable

        require_drawable(path)
    return path


@click.command("run", cls=SectionedCommand)
@setup_options
@input_option
@file_option("--labels", "Names of the classes, one a line.  [default: the metadata's]")
@number_option("--top", "Classes shown.", default=5)
@click.option("--signature", metavar="NAME", help="Call this signature, by its names.")
@number_option("--repeat", "Number of invokes; the median time is shown.", default=1)
@click.option(
    "--threshold",
    type=float,
    help="Lowest score.  [default: the metadata's; 0.3 for detections]",
)
@picture_options
@sample_rate_option
@seed_option
@save_option
@click.option(
    "--draw",
    type=OutputFile(),
    metavar="FILE.png",
    callback=_require_drawable,
    help="Draw the findings on the input picture, with a legend.",
)
@json_option
@diagnosis_options
def command(labels: str | None, as_json: bool, **options: Any) -> None:
    """Run a model and show its outputs.

    A picture is resized to the input's height and width (bilinear). A uint8 input gets its bytes,
    an int8 input the bytes minus 128, a float input (byte - 127.5) / 127.5, unless the model's
    metadata or --mean and --std say otherwise. A sound is resampled, mixed to the model's channels,
    and cut or padded with zeros. A text becomes numbers by the tokenizer of the metadata. Scores of
    classes are shown as real numbers, best first. Boxes, key points and classes of pixels are shown
    if they are recognized. Other outputs are shown as shape, range and first values. Outputs are
    named by the signature, the metadata, or the operator that makes them.
    """
    request = RunRequest(labels=_read_labels(labels), **options)
    if request.picture.crop == "none":
        require_effect(["fraction"], "needs --crop square")
    answer = _run(request)
    _note_what_has_no_effect(request, labels, answer)
    if as_json:
        print_json(answer.to_json())
    else:
        print_answer(console(), answer)


def _note_what_has_no_effect(request: RunRequest, labels: str | None, answer: RunAnswer) -> None:
    """Print a note on stderr if labels or a threshold have no effect on any output."""
    # A threshold has an effect if there were scores, even if it removed all of them.
    if answer.findings.tensors or any(o.top or o.threshold is not None for o in answer.outputs):
        return
    if request.labels:
        count = len(request.labels)
        sizes = ", ".join(str(math.prod(o.shape)) for o in answer.outputs)
        click.echo(
            f"note: {labels} has {count} names, no output has as many classes: outputs have "
            f"{sizes} values; give the names of this model's classes",
            err=True,
        )
    elif click.get_current_context().get_parameter_source("top") is ParameterSource.COMMANDLINE:
        text = "note: --top has no effect, as no output is known to be a classifier's"
        click.echo(f"{text}; --labels FILE names its classes", err=True)
    if request.threshold is not None:
        text = "note: --threshold has no effect, as no output has scores; leave it out"
        click.echo(text, err=True)


@contextlib.contextmanager
def _naming(model: str) -> Iterator[None]:
    """Put the file's name before an error about operators that the model lacks."""
    try:
        yield
    except UnresolvedOpError as error:
        error.args = (f"{os.path.basename(model)}: {error}",)
        raise


def _run(request: RunRequest) -> RunAnswer:
    from delegraph.tools.array_files import write_npz
    from delegraph.tools.model_call import model_call
    from delegraph.tools.recognition.drawing import draw_findings
    from delegraph.tools.tensor_names import tensor_names, with_names

    model = request.setup.loaded_model()
    metadata = _metadata(model, request.signature)
    with request.setup.interpreter() as interpreter:
        call = model_call(interpreter, request.signature)
        names = tensor_names(request.setup, request.signature, call, model)
        details = with_names(call.input_details(), names.inputs)
        inputs = _inputs(request, model, metadata, details)
        picture = _picture(request, inputs)
        values = [given.values for given in inputs]
        with progress("allocating"), _naming(request.setup.model):
            allocate = _milliseconds(lambda: call.prepare(values))
        with progress("running"):
            invokes = tuple(_milliseconds(call.invoke) for _ in range(request.repeat))
        outputs = call.outputs()
        if request.save is not None:
            write_npz(request.save, names.outputs, [array for _, array in outputs])
        findings = _findings(request, model, metadata, inputs, outputs)
        named = with_names([details for details, _ in outputs], names.outputs)
        summaries = [
            _summary(request, metadata, findings, details, array)
            for details, (_, array) in zip(named, outputs, strict=True)
        ]
        scale = None
        if request.draw is not None and picture is not None:
            scores = next((summary.top for summary in summaries if summary.top), ())
            classes = [score for score in scores if score.score > 0] or scores[:1]
            scale = draw_findings(findings, classes, picture, request.draw)
        return RunAnswer(
            request.setup.model,
            request.signature,
            {each.key: each.subgraph_index for each in model.signatures},
            request.setup.numerics,
            inputs,
            summaries,
            findings,
            None if picture is None else picture.size,
            request.picture.crop != "none",
            request.save,
            request.draw,
            scale,
            interpreter.placement,
            getattr(interpreter, "incidents", ()),  # other runtimes have none
            None if request.signature is not None else allocate,
            invokes,
        )


def _metadata(model: Model, signature: str | None) -> ModelMetadata:
    """Return the metadata of the first subgraph; empty if the signature calls another subgraph."""
    from delegraph.tools.called_inputs import called_metadata

    metadata = called_metadata(model, signature)
    for fault in metadata.faults:
        advice = "it is left out; options such as --labels and --mean replace it"
        click.echo(f"note: the model's metadata: {printable(fault)}; {advice}", err=True)
    return metadata


def _inputs(
    request: RunRequest, model: Model, metadata: ModelMetadata, details: Sequence[Details]
) -> list[GivenInput]:
    """Return the value of every input, in the order of the model or of the signature."""
    import numpy as np

    from delegraph.tools.called_inputs import other_input_names, require_room_for
    from delegraph.tools.given_inputs import given_inputs
    from delegraph.tools.model_inputs import input_values
    from delegraph.tools.tokenizing import text_for_all_inputs

    require_room_for(request.setup, model, details)
    rng = np.random.default_rng(request.seed)

    def values_of(text: str, entry: Details, note: Callable[[str], object]) -> NDArray[Any]:
        described = metadata.tensor(int(entry["index"]))
        rate, picture = request.sample_rate, request.picture
        return input_values(
            text,
            entry,
            rng,
            described=described,
            sample_rate=rate,
            picture=picture,
            note=note,
        )

    names = other_input_names(model, request.signature, details)
    words = text_for_all_inputs(request.inputs, details, names, metadata)
    return given_inputs(words, details, names, values_of)


def _picture(request: RunRequest, inputs: Sequence[GivenInput]) -> Image | None:
    """Return the part of the first picture that the model gets; None if no input is a picture."""
    from delegraph.tools.decoded_pictures import open_picture
    from delegraph.tools.pictures import is_picture

    of_numbers = [given for given in inputs if given.values.dtype.kind != "O"]  # others are texts
    path = next((given.source for given in of_numbers if is_picture(given.source)), None)
    if path is None:
        require_effect([*PICTURE_OPTIONS, "draw"], _NEEDS_PICTURE)
        return None
    return request.picture.cut(open_picture(path))


def _findings(
    request: RunRequest,
    model: Model,
    metadata: ModelMetadata,
    inputs: Sequence[GivenInput],
    outputs: Sequence[tuple[Details, NDArray[Any]]],
) -> Findings:
    """Return the boxes, poses and classes that are recognized in the outputs."""
    from delegraph.tools.recognition.image_outputs import recognize
    from delegraph.tools.recognition.picture_answer import Seen, picture_size

    called = {s.key: s.subgraph_index for s in model.signatures}.get(request.signature or "", 0)
    sizes = (picture_size(given.values) for given in inputs)
    size = next((size for size in sizes if size is not None), None)
    graph = model.subgraphs[called]
    return recognize(Seen(graph, outputs, metadata, request.labels, request.threshold, size))


def _summary(
    request: RunRequest,
    metadata: ModelMetadata,
    findings: Findings,
    details: Details,
    array: NDArray[Any],
) -> OutputSummary:
    """Return the summary of an output: its range, and its best classes if it has scores.

    Labels and the least score that is shown are the user's, else those in the metadata. An output
    in *findings*, such as boxes, is summarized without classes.
    """
    from delegraph.tools.model_outputs import summarize

    if int(details["index"]) in findings.tensors:
        return summarize(array, details, top=0)
    described = metadata.tensor(int(details["index"]))
    labels = request.labels or described.axis_labels
    threshold = described.score_threshold if request.threshold is None else request.threshold
    return summarize(array, details, labels, request.top, threshold)


def _milliseconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return round(1e3 * (time.perf_counter() - start), 3)


def _read_labels(path: str | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        names = tuple(Path(path).read_text(encoding="utf-8-sig").splitlines())
    except UnicodeDecodeError as error:
        raise click.UsageError(f"--labels {path!r}: expected a text file in UTF-8") from error
    except OSError as error:
        raise click.UsageError(f"--labels {path!r}: {error.strerror or error}") from error
    if not names:
        raise click.UsageError(f"--labels {path!r} is empty, expected one name a line")
    return names
