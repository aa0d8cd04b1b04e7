"""``delegraph run``: runs a model on given inputs, and prints its outputs.

Options that other commands have too, and their checks, are in
:mod:`delegraph.cli.options.arguments` and :mod:`delegraph.cli.options.setup`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import console, print_json, progress
from delegraph.cli.answers.run import RunAnswer, print_answer
from delegraph.cli.options.arguments import diagnosis_options, json_option, save_option
from delegraph.cli.options.inputs import input_option, sample_rate_option, seed_option
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.setup import setup_options
from delegraph.errors import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.graph.metadata import ModelMetadata
    from delegraph.graph.model import Model
    from delegraph.tools.given_inputs import GivenInput
    from delegraph.tools.model_call import Details
    from delegraph.tools.model_outputs import OutputSummary
    from delegraph.tools.recognition.findings import Findings
    from delegraph.tools.setup import Setup


@dataclass(frozen=True)
class RunRequest:
    """Parsed options of ``delegraph run``."""

    setup: Setup
    inputs: tuple[str, ...]
    labels: tuple[str, ...]
    top: int
    threshold: float | None
    sample_rate: int | None
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
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False),
    help="Names of the classes, one a line.  [default: the metadata's]",
)
@click.option("--top", type=click.IntRange(1), default=5, show_default=True, help="Classes shown.")
@click.option("--signature", metavar="NAME", help="Call this signature, by its names.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Invoke so many times, and show the median time.",
)
@click.option(
    "--threshold",
    type=float,
    help="Lowest score.  [default: the metadata's; 0.3 for detections]",
)
@sample_rate_option
@seed_option
@save_option
@click.option(
    "--draw",
    metavar="FILE.png",
    callback=_require_drawable,
    help="Draw boxes, key points or classes of pixels on the input picture.",
)
@json_option
@diagnosis_options
def command(labels: str | None, as_json: bool, **options: Any) -> None:
    """Run a model and show its outputs.

    A picture is resized to the input's height and width (bilinear). A uint8 input gets its bytes,
    an int8 input the bytes minus 128, a float input (byte - 127.5) / 127.5, unless the model's
    metadata says otherwise. A sound is resampled, mixed to the model's channels, and cut or padded
    with zeros. Scores of classes are shown as real numbers, best first. Boxes, key points and
    classes of pixels are shown if they are recognized, other outputs as shape, range and first
    values.
    """
    request = RunRequest(labels=_read_labels(labels), **options)
    answer = _run(request)
    _note_what_has_no_effect(request, labels, answer)
    if as_json:
        print_json(answer.to_json())
    else:
        print_answer(console(), answer)


def _note_what_has_no_effect(request: RunRequest, labels: str | None, answer: RunAnswer) -> None:
    """Print a note on stderr if labels or a threshold are given, but no output has scores."""
    # A threshold has an effect if there were scores, even if it removed all of them.
    if answer.findings.tensors or any(o.top or o.threshold is not None for o in answer.outputs):
        return
    if request.labels:
        count = len(request.labels)
        click.echo(f"note: {labels} has {count} names, no output has as many classes", err=True)
    if request.threshold is not None:
        click.echo("note: --threshold has no effect, as no output has scores", err=True)


def _run(request: RunRequest) -> RunAnswer:
    from delegraph.tools.array_files import write_npz
    from delegraph.tools.model_call import model_call
    from delegraph.tools.pictures import open_picture
    from delegraph.tools.recognition.drawing import draw_findings

    model = request.setup.loaded_model()
    metadata = _metadata(model, request.signature)
    with request.setup.interpreter() as interpreter:
        call = model_call(interpreter, request.signature)
        inputs = _inputs(request, model, metadata, call.input_details())
        picture = _picture(request, inputs)
        values = [given.values for given in inputs]
        with progress("allocating"):
            allocate = _milliseconds(lambda: call.prepare(values))
        with progress("running"):
            invokes = tuple(_milliseconds(call.invoke) for _ in range(request.repeat))
        outputs = call.outputs()
        if request.save is not None:
            names = [details["name"] for details, _ in outputs]
            write_npz(request.save, names, [array for _, array in outputs])
        findings = _findings(request, model, metadata, inputs, outputs)
        if request.draw is not None and picture is not None:
            draw_findings(findings, picture, request.draw)
        return RunAnswer(
            request.setup.model,
            request.signature,
            request.setup.numerics,
            inputs,
            [_summary(request, metadata, findings, *output) for output in outputs],
            findings,
            None if picture is None else open_picture(picture).size,
            request.draw,
            interpreter.placement,
            getattr(interpreter, "incidents", ()),  # which Delegraph's own counts
            None if request.signature is not None else allocate,
            invokes,
        )


def _metadata(model: Model, signature: str | None) -> ModelMetadata:
    """Return the metadata of the first subgraph; empty if the signature calls another subgraph."""
    from delegraph.tools.called_inputs import called_metadata

    metadata = called_metadata(model, signature)
    for fault in metadata.faults:
        click.echo(f"note: the model's metadata: {printable(fault)}", err=True)
    return metadata


def _inputs(
    request: RunRequest, model: Model, metadata: ModelMetadata, details: Sequence[Details]
) -> list[GivenInput]:
    """Return the value of every input, in the order of the model or of the signature."""
    import numpy as np

    from delegraph.tools.called_inputs import require_room_for, signature_names
    from delegraph.tools.given_inputs import given_inputs
    from delegraph.tools.model_inputs import input_values

    require_room_for(request.setup, model, details)
    rng = np.random.default_rng(request.seed)

    def values_of(text: str, entry: Details, note: Callable[[str], object]) -> NDArray[Any]:
        described = metadata.tensor(int(entry["index"]))
        rate = request.sample_rate
        return input_values(text, entry, rng, described=described, sample_rate=rate, note=note)

    names = signature_names(model, request.signature, details)
    return given_inputs(request.inputs, details, names, values_of)


def _picture(request: RunRequest, inputs: Sequence[GivenInput]) -> str | None:
    """Return the path of the first picture among the inputs, or None."""
    from delegraph.tools.pictures import is_picture

    of_numbers = [given for given in inputs if given.values.dtype.kind != "O"]  # others are texts
    picture = next((given.source for given in of_numbers if is_picture(given.source)), None)
    if picture is None and request.draw is not None:
        raise click.UsageError("--draw needs an input that is a picture: --input photo.jpg")
    return picture


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
    """Return the summary of an output, with labels and threshold of the user or the author."""
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
