"""``delegraph run``: a model on given inputs, and what it answers.

Options that other commands have too, and their checks, are in :mod:`delegraph.cli.options`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.options import (
    delegate_option,
    failure_options,
    json_option,
    limit_options,
    model_argument,
    placement_options,
    requested_delegates,
    require_own_runtime,
    runtime_option,
    traceback_option,
)
from delegraph.cli.printing import console, heading, print_json, print_table, progress

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph import Interpreter, Placement
    from delegraph.delegation.delegate import PartitionPolicy
    from delegraph.graph.model import Signature
    from delegraph.native import LiteRtInterpreter
    from delegraph.operators.numerics import Numerics
    from delegraph.runtime.delegates.failure_policy import Incident, OnFailure
    from delegraph.runtime.options import Requirement
    from delegraph.tools.model_outputs import OutputSummary


@dataclass(frozen=True)
class RunRequest:
    """What the user asks for, as typed."""

    model: str
    inputs: tuple[str, ...]
    delegates: tuple[str, ...]
    delegate_files: tuple[str, ...]
    rules: str | None
    require: Requirement | None
    partition_policy: PartitionPolicy
    on_failure: OnFailure
    validate: bool
    time_limit: float | None
    table_limit: int | None
    depth_limit: int | None
    labels: tuple[str, ...]
    top: int
    seed: int
    threads: int | None
    numerics: Numerics
    runtime: str
    save: str | None


@dataclass(frozen=True)
class RunAnswer:
    """What came of it; times in milliseconds."""

    inputs: list[dict[str, Any]]
    outputs: list[OutputSummary]
    placement: Placement
    incidents: tuple[Incident, ...]
    milliseconds: dict[str, float]


@click.command("run")
@model_argument
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]VALUE",
    help="An input: 'random' (the default), 'zeros', a number or numbers (1,2,3), a .npy file, or "
    "a picture. NAME is a tensor or signature name, or a position (0, 1, ...); it may be left out "
    "when there is one input.",
)
@delegate_option
@placement_options
@failure_options
@limit_options
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False),
    help="Names of the classes, one a line.",
)
@click.option("--top", type=click.IntRange(1), default=5, show_default=True, help="Classes shown.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of random inputs.")
@click.option(
    "--threads",
    type=click.IntRange(1),
    help="Threads of kernels and delegates. Default: one for kernels, what delegates choose.",
)
@click.option(
    "--numerics",
    type=click.Choice(["builtin", "reference"]),
    default="builtin",
    show_default=True,
    help="Round like the official builtin kernels, or like the reference ones.",
)
@runtime_option
@click.option(
    "--save",
    metavar="FILE.npz",
    help="Save all outputs, by tensor name (output_0, output_1, ... where names are not unique).",
)
@json_option
@traceback_option
def command(labels: str | None, as_json: bool, **options: Any) -> None:
    """Run a model once and show its outputs.

    A picture is resized to the input's height and width (bilinear). A uint8 input gets its bytes,
    an int8 input the bytes minus 128, a float input (byte - 127.5) / 127.5. Scores of classes are
    shown as real numbers, best first; other outputs as shape, range and first values.
    """
    request = RunRequest(labels=_read_labels(labels), **options)
    answer = _run(request)
    if request.labels and not any(output.top for output in answer.outputs):
        count = len(request.labels)
        click.echo(f"note: {labels} has {count} names, no output has as many classes", err=True)
    if as_json:
        print_json(
            {
                "model": request.model,
                "numerics": request.numerics,
                "inputs": answer.inputs,
                "outputs": [asdict(output) for output in answer.outputs],
                "placement": answer.placement.to_json(),
                "incidents": [incident.to_json() for incident in answer.incidents],
                "milliseconds": answer.milliseconds,
            }
        )
    else:
        _print(console(), request, answer)


def _interpreter(request: RunRequest) -> Interpreter | LiteRtInterpreter:
    from delegraph import Interpreter, OpResolverType

    delegates = requested_delegates(request.delegates, request.delegate_files)
    if request.runtime == "delegraph":
        return Interpreter(
            model_path=request.model,
            delegates=delegates,
            rules=request.rules,
            require=request.require,
            partition_policy=request.partition_policy,
            on_failure=request.on_failure,
            validate=request.validate,
            time_limit=request.time_limit,
            table_limit=request.table_limit,
            depth_limit=request.depth_limit,
            num_threads=request.threads,
            numerics=request.numerics,
        )
    from delegraph.native import LiteRtInterpreter

    require_own_runtime(
        {
            "--rules": request.rules is not None,
            "--require": request.require is not None,
            "--partition-policy": request.partition_policy != "largest",
            "--on-failure": request.on_failure != "raise",
            "--validate": request.validate,
            "--time-limit": request.time_limit is not None,
            "--table-limit": request.table_limit is not None,
            "--depth-limit": request.depth_limit is not None,
        }
    )
    is_reference = request.numerics == "reference"
    resolver = OpResolverType.BUILTIN_REF if is_reference else OpResolverType.AUTO
    return LiteRtInterpreter(
        model_path=request.model,
        delegates=delegates,
        num_threads=request.threads,
        experimental_op_resolver_type=resolver,
    )


def _run(request: RunRequest) -> RunAnswer:
    from delegraph.graph.loader import load_model
    from delegraph.tools.model_outputs import summarize

    signatures = load_model(request.model, request.table_limit).signatures
    with _interpreter(request) as interpreter:
        values = _inputs(request, interpreter.get_input_details(), signatures)
        times = {}
        with progress("allocating"):
            times["allocate"] = _milliseconds(lambda: _allocate(interpreter, values))
        with progress("running"):
            times["invoke"] = _milliseconds(interpreter.invoke)
        details = interpreter.get_output_details()
        arrays = [interpreter.get_tensor(entry["index"]) for entry in details]
        if request.save is not None:
            _save(request.save, details, arrays)
        outputs = [
            summarize(array, entry, request.labels, request.top)
            for array, entry in zip(arrays, details, strict=True)
        ]
        inputs = [
            {
                "name": entry["name"],
                "index": int(entry["index"]),
                "dtype": "string" if array.dtype.kind == "O" else array.dtype.name,
                "shape": list(array.shape),
                "value": text,
            }
            for entry, text, array in values
        ]
        incidents = getattr(interpreter, "incidents", ())  # which Delegraph's own counts
        return RunAnswer(inputs, outputs, interpreter.placement, incidents, times)


def _inputs(
    request: RunRequest, details: Sequence[Mapping[str, Any]], signatures: Sequence[Signature]
) -> list[Any]:
    """Return details, text and array of every input, in the model's order."""
    import numpy as np

    from delegraph.tools.model_inputs import input_values

    texts = _texts(request.inputs, details, signatures)
    rng = np.random.default_rng(request.seed)
    return [
        (entry, text, input_values(text, entry, rng))
        for entry, text in ((entry, texts.get(entry["index"], "random")) for entry in details)
    ]


def _texts(
    given: Sequence[str], details: Sequence[Mapping[str, Any]], signatures: Sequence[Signature]
) -> dict[int, str]:
    """Return what the user gave, by tensor index."""
    names = {str(position): entry["index"] for position, entry in enumerate(details)}
    for signature in signatures:
        if signature.subgraph_index == 0:
            names.update(signature.inputs)
    names.update({entry["name"]: entry["index"] for entry in details})
    known = ", ".join(repr(entry["name"]) for entry in details)
    texts: dict[int, str] = {}
    for text in given:
        name, value = _split(text, names)
        if name is None:
            if len(details) != 1 or ("=" in text and not Path(text).exists()):
                raise click.UsageError(f"--input {text!r} names none of the inputs: {known}")
            name = "0"
        if names[name] in texts:
            raise click.UsageError(f"input {name!r} is given twice")
        texts[names[name]] = value
    return texts


def _split(text: str, names: Mapping[str, int]) -> tuple[str | None, str]:
    """Split ``NAME=VALUE``; names may hold ``=`` themselves, so the longest known one counts."""
    found = [name for name in names if text.startswith(f"{name}=")]
    if not found:
        return None, text
    name = max(found, key=len)
    return name, text[len(name) + 1 :]


def _allocate(interpreter: Interpreter | LiteRtInterpreter, values: list[Any]) -> None:
    """Give the inputs the shapes of their values, allocate, and set them."""
    for entry, _, array in values:
        if list(array.shape) != entry["shape"].tolist():
            interpreter.resize_tensor_input(entry["index"], array.shape)
    interpreter.allocate_tensors()
    for entry, _, array in values:
        interpreter.set_tensor(entry["index"], array)


def _milliseconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return round(1e3 * (time.perf_counter() - start), 3)


def _read_labels(path: str | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        return tuple(Path(path).read_text(encoding="utf-8-sig").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"labels {path!r} cannot be read: {error}") from error


def _save(path: str, details: Sequence[Mapping[str, Any]], arrays: Sequence[Any]) -> None:
    import numpy as np

    names = [str(entry["name"]) for entry in details]
    if len(set(names) - {"", "file"}) < len(names):  # savez has an argument called file
        names = [f"output_{i}" for i in range(len(names))]
    try:
        np.savez(path, **dict(zip(names, arrays, strict=True)))
    except OSError as error:
        raise click.UsageError(f"--save {path!r}: {error}") from error


def _print(out: Console, request: RunRequest, answer: RunAnswer) -> None:
    out.print(request.model, style="bold")
    if answer.placement.delegates:
        out.print(f"  {answer.placement}")
    if request.numerics != "builtin":
        out.print(f"  numerics: {request.numerics}")
    heading(out, "Inputs")
    print_table(
        out,
        ("name", "type", "shape", "value"),
        [(i["name"], i["dtype"], i["shape"], i["value"]) for i in answer.inputs],
    )
    brief = [output for output in answer.outputs if not output.top]
    if brief:
        heading(out, "Outputs")
        rows = [(o.name, o.dtype, list(o.shape), _range(o), _first(o)) for o in brief]
        print_table(out, ("name", "type", "shape", "range", "values"), rows)
    for output in answer.outputs:
        if output.top:
            _print_classes(out, output)
    out.print()
    out.print(", ".join(f"{what} {ms:.1f} ms" for what, ms in answer.milliseconds.items()))


def _print_classes(out: Console, output: OutputSummary) -> None:
    heading(out, f"Output {output.name!r}, {output.dtype} {list(output.shape)}: best classes")
    labelled = any(score.label is not None for score in output.top)
    rows = [
        (f"{score.score:.6g}", score.index, *((score.label or "",) if labelled else ()))
        for score in output.top
    ]
    columns = ("score", "class", *(("label",) if labelled else ()))
    print_table(out, columns, rows, right=("score", "class"))


def _range(output: OutputSummary) -> str:
    if output.minimum is None or output.maximum is None or output.minimum == output.maximum:
        return ""
    return f"{output.minimum:.6g} to {output.maximum:.6g}"


def _first(output: OutputSummary) -> str:
    shown = ", ".join(_number(value) for value in output.first)
    size = 1
    for dim in output.shape:
        size *= dim
    return f"{shown}, ..." if size > len(output.first) else shown


def _number(value: Any) -> str:
    return f"{value:.7g}" if isinstance(value, float) else repr(value)
