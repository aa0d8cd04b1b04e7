"""``delegraph compile``: compiles partitions of delegates into the model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import console, heading, plural, print_json, print_table, size
from delegraph.cli.answers.progress_bar import shown_progress
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


def _listed(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (text or "").split(",")))


def _numbers(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...]:
    kind = click.IntRange(min=1)
    return tuple(int(kind(each, parameter, ctx)) for each in _listed(ctx, parameter, text))


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
@click.option(
    "--cpu",
    metavar="LEVEL,...",
    callback=_listed,
    help="For which levels of processors numba_cpu, or another delegate with an option 'cpu', "
    "prepares the model.  [default: this processor's]",
)
@click.option(
    "--threads",
    metavar="N,...",
    callback=_numbers,
    help="For which numbers of threads.  [default: the interpreter's on this machine]",
)
@rule_options
@limit_options
@json_option
@diagnosis_options
def command(
    model: str,
    delegates: tuple[str, ...],
    output: str,
    cpu: tuple[str, ...],
    threads: tuple[int, ...],
    as_json: bool,
    **arguments: Any,
) -> int:
    """Compile the partitions of delegates ahead of time.

    Each partition that a delegate claims in MODEL becomes one custom operator with the data that
    the delegate compiled. All other nodes stay unchanged. When the written file is loaded, its
    delegates are applied without being named. A bundle keeps its other sections.

    For numba_cpu all nodes stay unchanged, so the written file runs in every runtime. What
    numba_cpu decides for the model comes into the file beside the nodes, for --cpu and --threads.
    """
    if not delegates:
        raise click.UsageError("give at least one --delegate", click.get_current_context())
    from delegraph.runtime.options import in_groups
    from delegraph.tools import compile_model

    with shown_progress() as progress:
        compiled = compile_model(
            model, delegates, cpu=cpu, threads=threads, progress=progress, **in_groups(arguments)
        )
    is_written = bool(compiled.partitions or any(each.entries for each in compiled.kept))
    if is_written:
        compiled.write(output)
    if as_json:
        print_json({"model": model, "output": output, **compiled.to_json()})
    else:
        _print(model, output, compiled)
    if not is_written:
        raise CheckFailed(f"nothing of {Path(model).name} was compiled; {output} is not written")
    return OK


def _print(model: str, output: str, compiled: CompiledModel) -> None:
    from delegraph.cli.answers.explanation import print_refusals, print_stages

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
    if compiled.kept:
        time = f"{compiled.seconds:.1f} s"
        out.print(f"  prepared in {time}: {output}, {size(len(compiled.content))}")
        heading(out, "Kept in the file")
        print_table(
            out,
            ("delegate", "by", "threads", "entries", "size"),
            [
                (
                    kept.delegate,
                    kept.provider,
                    "default" if kept.threads is None else kept.threads,
                    kept.entries,
                    size(kept.size),
                )
                for kept in compiled.kept
            ],
            right=("threads", "entries", "size"),
        )
    print_stages(out, compiled.explanation)
    print_refusals(out, compiled.explanation)
