"""``delegraph compile``: compiles partitions of delegates into the model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import console, heading, plural, print_json, print_table, size
from delegraph.cli.answers.progress_bar import shown_progress
from delegraph.cli.commands.explain import print_refusals, print_stages
from delegraph.cli.exit_codes import OK
from delegraph.cli.failure import CheckFailed
from delegraph.cli.options.arguments import (
    diagnosis_options,
    json_option,
    limit_options,
    model_argument,
    named_delegate_option,
    require_folder,
    rule_options,
)

if TYPE_CHECKING:
    from delegraph.tools.compiling import CompiledModel


@click.command("compile")
@model_argument
@named_delegate_option
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="OUT",
    callback=require_folder,
    help="Write the compiled model to this file; for a model in a bundle, the whole bundle unless "
    "the name ends in .tflite.",
)
@rule_options
@limit_options
@json_option
@diagnosis_options
def command(
    model: str, delegates: tuple[str, ...], output: str, as_json: bool, **arguments: Any
) -> int:
    """Compile the partitions of delegates ahead of time.

    Each partition that a delegate claims in MODEL becomes one custom operator with the data that
    the delegate compiled. All other nodes stay unchanged. When the written file is loaded, its
    delegates are applied without being named. A bundle keeps its other sections.
    """
    if not delegates:
        raise click.UsageError("give at least one --delegate", click.get_current_context())
    from delegraph.runtime.options import in_groups
    from delegraph.tools import compile_model

    with shown_progress() as progress:
        compiled = compile_model(model, delegates, progress=progress, **in_groups(arguments))
    if compiled.partitions:
        compiled.write(output)
    if as_json:
        print_json({"model": model, "output": output, **compiled.to_json()})
    else:
        _print(model, output, compiled)
    if not compiled.partitions:
        raise CheckFailed(f"nothing of {Path(model).name} was compiled; {output} is not written")
    return OK


def _print(model: str, output: str, compiled: CompiledModel) -> None:
    out = console()
    out.print(model, style="bold")
    if compiled.partitions:
        count = plural(len(compiled.partitions), "partition")
        time = f"{compiled.seconds:.1f} s"
        out.print(f"  {count} compiled in {time}: {output}, {size(len(compiled.content))}")
        heading(out, "Compiled")
        print_table(
            out,
            ("delegate", "by", "version", "nodes", "blob", "operators"),
            [
                (
                    found.address,
                    found.provider,
                    found.version,
                    sum(found.operators.values()),
                    size(found.blob_bytes),
                    found.facts()["operators"],
                )
                for found in compiled.partitions
            ],
            right=("nodes", "blob"),
        )
    print_stages(out, compiled.explanation)
    if compiled.explanation.refusals:
        print_refusals(out, compiled.explanation)
