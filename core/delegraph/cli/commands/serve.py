"""``delegraph serve``: serves a model to many clients, by the Open Inference Protocol."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import print_json
from delegraph.cli.options.arguments import ModelPath, diagnosis_options, json_option
from delegraph.cli.options.kinds import choice_option, group, number_option
from delegraph.cli.options.sections import SectionedCommand
from delegraph.cli.options.serving import (
    ADDRESS_OPTIONS,
    LIMIT_OPTIONS,
    taken_addresses,
    taken_limits,
)
from delegraph.cli.options.setup import setup_options
from delegraph.errors import printable
from delegraph.quantities import plural

if TYPE_CHECKING:
    from delegraph.tools.setup import Setup

_OPTIONS = (
    click.argument("others", nargs=-1, type=ModelPath(), metavar="[MODEL]..."),
    choice_option(
        "--versions", ["newest", "all"], "Versions served: name/1, name/2.", default="newest"
    ),
    choice_option(
        "--model-control", ["auto", "on", "off"], "Clients may load models.", default="auto"
    ),
    click.option(
        "--name", metavar="NAME", help="Name in paths.  [default: the file's, without .tflite]"
    ),
    click.option("--signature", metavar="KEY", help="Serve this signature."),
    number_option("--max-batch-size", "Most rows computed together, or in a request.", default=32),
    click.option(
        "--max-latency",
        type=click.FloatRange(0),
        default=5.0,
        show_default=True,
        metavar="MS",
        help="Longest wait for further requests.",
    ),
    number_option("--max-queue", "Requests that may wait; more are refused.", default=64),
    choice_option(
        "--batching", ["auto", "resize", "rows"], "How rows are computed.", default="auto"
    ),
    number_option("--replicas", "Processes that compute; more than 1 need Ray.", default=1),
    *ADDRESS_OPTIONS,
    *LIMIT_OPTIONS,
    click.option(
        "--access-log",
        metavar="FILE",
        help="A line of JSON for each request; - is standard output.",
    ),
    number_option(
        "--grace",
        "Time for pending requests after SIGTERM.",
        default=30,
        least=0,
        metavar="SECONDS",
    ),
    click.option(
        "--ray-address",
        metavar="ADDRESS",
        help="Cluster of the replicas.  [default: RAY_ADDRESS, or none]",
    ),
)


_EXPECTED = "expected name.tflite or name/1/model.tflite"
"""Text for messages that says which files a folder of models must contain."""


@click.command("serve", cls=SectionedCommand)
@setup_options
@group(*_OPTIONS)
@json_option
@diagnosis_options
def command(
    setup: Setup,
    as_json: bool,
    others: tuple[str, ...],
    versions: str,
    model_control: str,
    name: str | None,
    signature: str | None,
    max_batch_size: int,
    max_latency: float,
    max_queue: int,
    batching: Any,
    replicas: int,
    access_log: str | None,
    grace: int,
    ray_address: str | None,
    **more: Any,
) -> None:
    """Serve models to many clients (Open Inference Protocol).

    MODEL is a file, several files, or a folder with name.tflite or name/1/model.tflite for each.
    This process answers REST and gRPC, and computes requests together in batches. With --replicas
    or --ray-address, Ray Serve's processes compute. /v2/health/ready answers once the delegates are
    warm. SIGTERM and Ctrl-C end the server after its pending requests. Needs pip install
    'delegraph[serve]', and for Ray 'delegraph[serve-ray]'.
    """
    from delegraph.scale.predictor import Predictor
    from delegraph.scale.serve import ServeOptions, serve
    from delegraph.scale.serving.model_files import OfferedModels, name_of

    addresses = taken_addresses(more)
    offered = None
    if others or Path(setup.model).is_dir():
        if name is not None:
            raise click.UsageError("--name is for one file; several have the names of their files")
        may_change = model_control == "on" or (
            model_control == "auto" and (addresses.token.is_needed or addresses.is_private)
        )
        source = (setup.model, *others) if others else setup.model
        offered = OfferedModels(source, versions == "all", may_change)
        if not offered.find():
            if model_control != "on":
                raise click.UsageError(
                    f"{setup.model} has no models: {_EXPECTED}; --model-control on lets clients "
                    "load some later"
                )
            click.echo(f"note: {printable(setup.model)} has no models: {_EXPECTED}", err=True)
    if name is not None and "/" in name:
        raise click.UsageError(f"--name {name!r} is part of a URL, expected a name without '/'")
    options = ServeOptions(
        name=name or name_of(setup.model),
        offered=offered,
        max_latency=max_latency / 1e3,
        max_queued=max_queue,
        replicas=replicas,
        addresses=addresses,
        limits=taken_limits(more),
        access_log=access_log,
        grace=grace,
        ray_address=ray_address,
    )
    predictor = Predictor(
        replace(setup, threads=1) if setup.threads is None else setup,
        signature=signature,
        batching=batching,
        max_batch=max_batch_size,
    )
    if offered is None:
        ready = f"{options.name} is ready: {addresses.http_url}/v2/models/{options.name}"
    else:
        ready = f"models are ready: {addresses.http_url}"
    ready += f", {addresses.grpc_name}"
    if options.needs_ray:
        ready += f", {plural(replicas, 'replica')}"
    outcomes = serve(predictor, options, on_ready=lambda: click.echo(printable(ready), err=as_json))
    if as_json:
        print_json({"requests": outcomes})
    else:
        click.echo("stopped; requests: " + ", ".join(f"{n} {word}" for word, n in outcomes.items()))
