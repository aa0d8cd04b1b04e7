"""``delegraph numba``: commands for the compiled kernels."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import click

from delegraph.errors import DelegateError
from delegraph_numba_cpu import warmup
from delegraph_numba_cpu.codegen.cpu_levels import LEVELS, CpuLevel
from delegraph_numba_cpu.level_table import print_levels, say
from delegraph_numba_cpu.library.cpu import (
    VARIABLE,
    host_features,
    lacking,
    level_named,
    supported_levels,
)
from delegraph_numba_cpu.library.families import families
from delegraph_numba_cpu.library.prebuilt import OBJECTS, open_library, prebuilt_file


def _usable_level(ctx: click.Context, parameter: click.Parameter, name: str) -> str:
    """Return *name*, the value of ``--cpu``: a level that this processor has, ``auto`` or ``all``.

    Raises:
        UsageError: this processor does not have the level.
    """
    try:
        if name != "all":
            level_named(name)
    except DelegateError as error:
        raise click.UsageError(f"--{error}", ctx) from error
    return name


def _existing(ctx: click.Context, parameter: click.Parameter, name: str) -> str:
    """Return the path of a model, or ``FILE#SECTION``; a missing file is a mistake in the usage."""
    path = name if os.path.exists(name) else name.rpartition("#")[0] or name
    click.Path(exists=True, dir_okay=False).convert(path, parameter, ctx)
    return name


def _named_numbers(
    ctx: click.Context, parameter: click.Parameter, words: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Return the numbers of each ``[NAME=]N,N,...`` by name; a range has two."""
    found = {}
    for word in words:
        name, _, numbers = word.rpartition("=")
        try:
            found[name] = tuple(map(int, numbers.split(",")))
            if parameter.name == "ranges":
                _low, _high = found[name]
        except ValueError:
            raise click.BadParameter(f"{word!r}, expected {parameter.metavar}") from None
    return found


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("numba")
def command() -> None:
    """Compile the kernels of the numba_cpu delegate, or see where they are."""


@command.command("warmup", short_help="Compile all kernels now.")
@click.option(
    "--cpu",
    type=click.Choice(["auto", *LEVELS, "all"]),
    callback=_usable_level,
    default="auto",
    show_default=True,
    help="For which instructions; all means every level that this processor has.",
)
@json_option
def warm_up(cpu: str, as_json: bool) -> None:
    """Compile all kernels now, so that no model has to wait for them.

    Kernels that are in a library or in the cache already are not compiled again.
    """
    names = [level.name for level in supported_levels()] if cpu == "all" else [cpu]
    answers = []
    for name in names:
        level = level_named(name)
        start = time.perf_counter()
        warmup(name)
        count = len(families())
        answer = {"level": level.name, "families": count, "seconds": time.perf_counter() - start}
        answers.append(answer | _kernels(level))
        if not as_json:
            seconds, place = answer["seconds"], answers[-1]["place"]
            click.echo(f"{level.name}: {count} families of kernels, {seconds:.1f} s, in {place}")
    if as_json:
        click.echo(json.dumps({"levels": answers}, indent=2))


@command.command("info", short_help="Show which instructions and kernels are used, and why.")
@json_option
def info(as_json: bool) -> None:
    """Show the levels of instructions, where their kernels come from, and why.

    The first level is used unless the option cpu or the environment variable DELEGRAPH_NUMBA_CPU
    names another. It is the best level whose kernels came with this package. If no kernels came
    with it, those of the best level are compiled once and kept in the cache.
    """
    best, chosen = supported_levels()[0], level_named("auto")
    levels = (chosen, *(level for level in supported_levels() if level != chosen))
    used, *others = ({"level": level.name} | _kernels(level) for level in levels)
    features = host_features()
    lacks = {level.name: lacking(level, features) for level in LEVELS.values()}
    lacks = {name: what for name, what in lacks.items() if what}
    is_ready = not isinstance(prebuilt_file(chosen), str)
    if as_json:
        answer = {"used": used["level"], "levels": [used, *others], "lacks": lacks}
        answer["is_ready"] = is_ready
        click.echo(json.dumps(answer, indent=2))
        return
    why = "the best that this processor has"
    if os.environ.get(VARIABLE):
        why = f"as {VARIABLE} says"
    elif chosen != best:
        why = f"the best with prebuilt kernels; cpu={best.name} has faster ones"
    print_levels([used, *others], lacks, why)
    click.echo()
    say(_READY if is_ready else _NOT_READY)


@command.command("roof", short_help="Show how near operators come to the processor's peak.")
@click.argument("model", metavar="MODEL", callback=_existing)
@click.option(
    "--threads",
    type=click.IntRange(1),
    metavar="N",
    default=1,
    show_default=True,
    help="Number of threads.",
)
@click.option(
    "--cpu",
    type=click.Choice(["auto", *LEVELS]),
    metavar="LEVEL",
    callback=_usable_level,
    default="auto",
    show_default=True,
    help="Level of instructions, as `delegraph numba info` names it.",
)
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]VALUE",
    help="A file, text, numbers, zeros or random; repeatable.",
)
@click.option(
    "--input-shape",
    "shapes",
    multiple=True,
    callback=_named_numbers,
    metavar="[NAME=]N,N,N",
    help="Give an input another shape; repeatable.",
)
@click.option(
    "--input-range",
    "ranges",
    multiple=True,
    callback=_named_numbers,
    metavar="[NAME=]LOW,HIGH",
    help="Range of random values; repeatable.",
)
@click.option("--signature", metavar="NAME", help="Signature to call, instead of the whole model.")
@click.option(
    "-d",
    "--delegate",
    "delegates",
    multiple=True,
    metavar="NAME[:K=V,...]",
    help="Delegate that takes nodes before numba_cpu; repeatable.",
)
@click.option("--inexact", is_flag=True, help="Allow 1 unit per operator, as exact=false does.")
@json_option
def roof(model: str, threads: int, cpu: str, inexact: bool, as_json: bool, **inputs: Any) -> None:
    """Show how near each operator of MODEL is to the highest speed of this processor.

    The model runs some dozen times, and the least time of each operator counts. The peak of
    products and of bytes read from each cache and from memory is the best of several short rounds
    between these runs. The roof is the least time that these peaks allow for the products, or for
    reading and writing each value once. Operators that take over 5 % of the time and reach less
    than 60 % of the roof are findings, if they take at least 20 us: timing each operator adds up to
    2 us to it. Those that take less are marked with `*`.

    Partitions of other delegates have a time, but no roof. Nodes of other subgraphs count as part
    of the node that calls them.
    """
    from rich.console import Console

    from delegraph.tools import InputRequest
    from delegraph_numba_cpu.roof.printing import print_roofs
    from delegraph_numba_cpu.roof.report import roof_report

    with Console(stderr=True).status("loading") as status:
        report = roof_report(
            model,
            cpu,
            threads,
            inputs=InputRequest(inputs["inputs"], inputs["shapes"], ranges=inputs["ranges"]),
            signature=inputs["signature"],
            delegates=inputs["delegates"],
            exact=not inexact,
            progress=lambda what, done, total: status.update(what),
        )
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=2))
        return
    is_free = sys.stdout.isatty() or "COLUMNS" in os.environ
    out = Console(width=None if is_free else 160, highlight=False, markup=False)
    print_roofs(out, report)


_READY = "models get numba_cpu by default, unless the environment or a configuration says otherwise"
_NOT_READY = (
    "models get numba_cpu only where it is named: these kernels are not prebuilt, and to load "
    "kernels from the cache llvmlite is imported, which is slow"
)


def _kernels(level: CpuLevel) -> dict[str, Any]:
    """Return where a level's compiled kernels come from: kind, size, and the reason for this.

    The kind is ``library`` or ``objects``, which are prebuilt; ``cache``; ``compiler``, which
    makes them at the first use; or ``none``.
    """
    found = prebuilt_file(level)
    if not isinstance(found, str):
        is_library = found.suffix != OBJECTS
        opened = open_library(found) if is_library else None
        if not isinstance(opened, str):
            source = "library" if is_library else "objects"
            place = {"place": str(found), "bytes": found.stat().st_size}
            return {"source": source, **place, "why": "made for this system, of these sources"}
        found = opened
    try:
        from delegraph_numba_cpu.library.cache import kernel_cache
    except ImportError:
        why = f"{found}; pip install 'delegraph-numba-cpu[jit]' adds what compiles them"
        return {"source": "none", "place": "", "bytes": 0, "why": why}
    cache = kernel_cache(level)
    size = sum(entry.size for entry in cache.entries())
    source = "cache" if size else "compiler"
    return {"source": source, "place": str(cache.folder), "bytes": size, "why": found}
