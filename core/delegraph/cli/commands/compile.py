"""``delegraph compile``: compiles partitions of delegates into the model file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.kept_entries import print_kept_entries
from delegraph.cli.answers.printing import (
    console,
    heading,
    print_json,
    print_paragraph,
    print_table,
    print_title,
    progress,
    size,
)
from delegraph.cli.answers.progress_bar import shown_progress
from delegraph.cli.exit_codes import OK
from delegraph.cli.failure import CheckFailed
from delegraph.cli.options.arguments import (
    diagnosis_options,
    json_option,
    limit_options,
    model_argument,
    named_delegate_option,
    rule_options,
)
from delegraph.cli.options.output_files import OutputFile
from delegraph.cli.options.sections import SectionedCommand
from delegraph.errors import printable
from delegraph.quantities import plural

if TYPE_CHECKING:
    from delegraph.tools.compiled_run import CompiledRun, LoadedFile
    from delegraph.tools.compiling import CompiledModel
    from delegraph.tools.kept_entries import KeptEntries
    from delegraph.tools.setup import Setup


def _listed(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (text or "").split(",")))


def _numbers(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...]:
    kind = click.IntRange(min=1)
    return tuple(int(kind(each, parameter, ctx)) for each in _listed(ctx, parameter, text))


@click.command("compile", cls=SectionedCommand)
@model_argument
@named_delegate_option
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    metavar="OUT",
    help="Write the model, or its bundle, to this file.",
)
@click.option(
    "--cpu",
    metavar="LEVEL,...",
    callback=_listed,
    help="Levels of processors.  [default: this processor's]",
)
@click.option(
    "--threads",
    metavar="N,...",
    callback=_numbers,
    help="Numbers of threads.  [default: the interpreter's here]",
)
@click.option("--dry-run", is_flag=True, help="Show the planned contents; write nothing.")
@click.option("--no-check", is_flag=True, help="Do not run the written file.")
@rule_options
@limit_options
@json_option
@diagnosis_options
def command(
    model: str,
    delegates: tuple[str, ...],
    output: str | None,
    cpu: tuple[str, ...],
    threads: tuple[int, ...],
    dry_run: bool,
    no_check: bool,
    as_json: bool,
    **arguments: Any,
) -> int:
    """Compile the partitions of delegates ahead of time.

    Each partition that a delegate claims in MODEL becomes one custom operator with the data that
    the delegate compiled. All other nodes stay unchanged. When the written file is loaded, its
    delegates are applied without being named. A bundle keeps its other sections.

    For numba_cpu all nodes stay unchanged, so the written file runs in every runtime. Its programs
    for the model, for --cpu and --threads, are added to the file.

    The written file is run once on random inputs, and its outputs are compared with those of MODEL.
    """
    _require_compilable(delegates)
    if output is None and not dry_run:
        raise click.UsageError("Missing option '-o' / '--output', or --dry-run")
    if output is not None:
        _require_ending(model, output)
    from delegraph.runtime.options import in_groups
    from delegraph.tools import compile_model

    with shown_progress() as tell:
        compiled = compile_model(
            model, delegates, cpu=cpu, threads=threads, progress=tell, **in_groups(arguments)
        )
    is_any = bool(compiled.partitions or any(each.entries for each in compiled.kept))
    written = output if is_any and not dry_run else None
    answer = {"model": model, "output": written, **compiled.to_json()}
    if written is not None:
        compiled.write(written)
    if not as_json:
        _print_inside(model, compiled, delegates)
    checked, loaded = None, ""
    if written is not None:
        if not as_json:
            click.echo(f"\nwritten to {printable(written)}")
        if not no_check:
            checked = _checked(model, written, compiled, arguments)
            answer["check"] = checked.to_json()
        if compiled.kept:
            found = _loaded_here(model, written, compiled, arguments)
            answer["kept"] = [
                {**kept.to_json(), **use.to_json()}
                for kept, use in zip(compiled.kept, found.uses, strict=True)
            ]
            loaded = found.told if cpu or threads else ""
    elif is_any and not as_json:
        click.echo("\ndry run: nothing is written")
    if as_json:
        print_json(answer)
    elif checked is not None:
        print_paragraph(console(), _told(model, checked), indent=0)
        if checked.unchecked and not checked.reason:
            print_paragraph(console(), f"not checked: {_cannot_run(checked)}", indent=0)
    if loaded and not as_json:
        print_paragraph(console(), loaded, indent=0)
    if not is_any:
        raise CheckFailed(_nothing(model, output, compiled))
    if checked is not None and checked.failure:
        raise CheckFailed(
            f"{output} computes other outputs than {Path(model).name}: {checked.failure}"
        )
    return OK


def _require_compilable(delegates: Sequence[str]) -> None:
    """Check that each name in ``--delegate`` is that of an installed delegate that compiles."""
    if not delegates:
        from delegraph.tools.compiling import compilable

        able = ", ".join(compilable()) or "no installed one"
        raise click.UsageError(
            f"give at least one --delegate; those that compile into the file: {able}",
            click.get_current_context(),
        )
    from delegraph.plugins.address import DelegateAddress
    from delegraph.plugins.specs import DELEGATE_WORDS
    from delegraph.runtime.delegates.requested_delegates import is_installed_name
    from delegraph.tools.compiling import compilable_offer

    for word in delegates:
        if word in DELEGATE_WORDS:
            raise click.UsageError(f"--delegate {word}: name the delegates to compile for")
        if not is_installed_name(word):
            raise click.UsageError(
                f"--delegate {word}: a delegate in a file is applied when the model is loaded, "
                f"'delegraph run MODEL -d {word}'; only an installed delegate can be compiled"
            )
        compilable_offer(DelegateAddress.parse(word))


def _require_ending(model: str, output: str) -> None:
    """Check that the written file ends in ``.tflite``, or like the file *model*."""
    from delegraph.bundles.opening import split_address

    endings = dict.fromkeys((".tflite", Path(split_address(model)[0]).suffix.lower()))
    if Path(output).suffix.lower() not in endings:
        expected = " or ".join(filter(None, endings))
        raise click.UsageError(f"--output {output!r}: expected a file ending in {expected}")


def _setups(
    model: str,
    output: str,
    kept: Sequence[KeptEntries],
    compiled: CompiledModel,
    arguments: Mapping[str, Any],
) -> tuple[Setup, Setup]:
    """Return the set-ups of the original model and of the written file.

    Args:
        model: the original model.
        output: the written file.
        kept: entries in the file of delegates that run here.
        compiled: the content of the file.
        arguments: limits and rules.
    """
    from delegraph.tools.setup import Setup

    # Compiled partitions bring their delegates; others are applied to both files, whose nodes are
    # the same, so that rules have the same meaning.
    unused = {"require", "rules"} if compiled.partitions else {"require"}
    limits = {name: value for name, value in arguments.items() if name not in unused}
    first = {each.delegate.partition(":")[0]: each.delegate for each in reversed(kept)}
    named = tuple(each.delegate for each in kept if each.delegate in first.values())
    threads = next((each.threads for each in kept), None)
    before = Setup(model, delegates=tuple(dict.fromkeys(named)) or None, threads=threads, **limits)
    return before, replace(before, model=_written_model(model, output, compiled))


def _written_model(model: str, output: str, compiled: CompiledModel) -> str:
    """Address of the model in the written file, which may be a bundle."""
    from delegraph.bundles.opening import split_address

    section = split_address(model)[1] if compiled.bundles else None
    is_bundle = section is not None and not output.lower().endswith(".tflite")
    return f"{output}#{section}" if is_bundle else output


def _checked(
    model: str,
    output: str,
    compiled: CompiledModel,
    arguments: Mapping[str, Any],
) -> CompiledRun:
    """Run the written file once, with the delegates and levels in it that this machine has."""
    from delegraph.tools.compiled_run import CompiledRun, loaded_file, run_compiled, why_not_here

    able = {each.delegate: not why_not_here(each.delegate) for each in compiled.kept}
    unchecked = tuple(address for address, is_able in able.items() if not is_able)
    kept = [each for each in compiled.kept if able[each.delegate]]
    if compiled.kept and not kept and not compiled.partitions:
        return CompiledRun(reason="no program in it is for this processor", unchecked=unchecked)
    with progress("running the written file once (--no-check leaves it out)"):
        before, after = _setups(model, output, kept, compiled, arguments)
        uses = loaded_file(kept, replace(after, delegates=None)).uses
        ready = [each for each, use in zip(kept, uses, strict=True) if use.is_used_here]
        if ready:  # kernels for others may have to be compiled first
            before, after = _setups(model, output, ready, compiled, arguments)
        found = run_compiled(before, after)
    return replace(found, unchecked=unchecked)


def _loaded_here(
    model: str, output: str, compiled: CompiledModel, arguments: Mapping[str, Any]
) -> LoadedFile:
    """Load the written file without options, to see which entries its delegates use then."""
    from delegraph.tools.compiled_run import loaded_file
    from delegraph.tools.setup import Setup

    limits = {name: value for name, value in arguments.items() if name != "require"}
    written = _written_model(model, output, compiled)
    return loaded_file(compiled.kept, Setup(written, **limits))


def _cannot_run(checked: CompiledRun) -> str:
    return f"{', '.join(checked.unchecked)} cannot run on this processor"


def _told(model: str, checked: CompiledRun) -> str:
    name = Path(model).name
    if checked.failure:
        return "run once: it does not compute what it did before"
    if checked.unchecked and checked.is_equal is None and checked.reason:
        return f"not checked: {checked.reason}; {_cannot_run(checked)}"
    if checked.is_equal is None:
        return f"not compared, as {name} itself does not run on random inputs: {checked.reason}"
    if checked.is_equal:
        return f"run once on random inputs: all outputs equal those of {name}"
    return (
        f"run once on random inputs: output {checked.output} differs from that of {name} by "
        f"{checked.largest:.3g} at most, where it was {checked.value:.6g} "
        f"('delegraph diff' measures it)"
    )


_NONE_NEEDED = "need no program made beforehand"


def _nothing(model: str, output: str | None, compiled: CompiledModel) -> str:
    """Return the error text for a file in which nothing was compiled."""
    named = dict.fromkeys(each.delegate.partition(":")[0] for each in compiled.kept)
    taken = [each.delegate for each in compiled.explanation.placement.partitions]
    own, others = ([t for t in taken if (t in named) is is_own] for is_own in (True, False))
    why = ""
    if own:
        why = f": the nodes that {own[0]} takes {_NONE_NEEDED}: the model starts as fast without"
    elif named and others:
        why = f": {' and '.join(named)} {_takes_none(list(dict.fromkeys(others)))}"
    written = "" if output is None else f"; {output} is not written"
    return f"nothing of {Path(model).name} was compiled{why}{written}"


def _empty(compiled: CompiledModel, delegates: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each delegate that added nothing to the file, with the cause."""
    from delegraph.plugins.address import DelegateAddress

    entries, nodes = Counter[str](), Counter[str]()
    for kept in compiled.kept:
        entries[kept.delegate.partition(":")[0]] += kept.entries
    for taken in compiled.explanation.placement.partitions:
        if taken.delegate in entries:
            nodes[taken.delegate] += len(taken.nodes)
    for found in compiled.partitions:
        nodes[found.delegate] += found.nodes
    earlier: list[str] = []
    for name in dict.fromkeys(DelegateAddress.parse(word).name for word in delegates):
        own = nodes[name]
        if name in entries and not entries[name]:
            why = f"the {plural(own, 'node')} that it takes {_NONE_NEEDED}"
            yield f"{name}: nothing kept; {why if own else f'it {_takes_none(earlier)}'}"
        elif not own:
            yield f"{name}: nothing compiled; it {_takes_none(earlier)}"
        if own:
            earlier.append(f"{name} ({plural(own, 'node')})")


def _takes_none(earlier: Sequence[str]) -> str:
    leave = "leaves" if len(earlier) == 1 else "leave"
    those = f" that {' and '.join(earlier)} {leave}" if earlier else ""
    return f"takes no node{those}"


def _print_inside(model: str, compiled: CompiledModel, delegates: Sequence[str]) -> None:
    """Print what the written file will contain: compiled partitions, sizes and entries."""
    from delegraph.cli.answers.explanation import print_refusals, print_stages

    out = console()
    print_title(out, model)
    before = "" if compiled.bundles else f" instead of {size(Path(model).stat().st_size)}"
    length = f"{size(len(compiled.content))}{before}"
    if compiled.partitions:
        count = plural(len(compiled.partitions), "partition")
        time = f"{compiled.seconds:.1f} s"
        out.print(f"  {count} compiled in {time}: {length}")
        heading(out, "Compiled")
        print_table(
            out,
            ("delegate", "by", "version", "nodes", "blob", "operators"),
            [
                (
                    found.address,
                    found.provider,
                    found.version,
                    found.nodes,
                    size(found.blob_bytes),
                    found.listed_operators,
                )
                for found in compiled.partitions
            ],
            right=("nodes", "blob"),
        )
        notes = compiled.explanation.placement.notes
        for name in dict.fromkeys(found.delegate for found in compiled.partitions):
            if name in notes:
                print_paragraph(out, f"{name}: {notes[name]}")
    if any(kept.entries for kept in compiled.kept):
        time = f"{compiled.seconds:.1f} s"
        out.print(f"  prepared in {time}: {length}")
        heading(out, "Kept in the file")
        print_kept_entries(out, compiled.kept)
    if compiled.dropped_bytes:
        lost = f"{size(compiled.dropped_bytes)} that delegates kept in {Path(model).name}"
        out.print()
        print_paragraph(out, f"{lost} are not in the new file: they are of the nodes before")
    empty = list(_empty(compiled, delegates)) if len(delegates) > 1 else []
    if empty:
        out.print()
    for text in empty:
        print_paragraph(out, text)
    print_stages(out, compiled.explanation)
    print_refusals(out, compiled.explanation)
