"""``delegraph numba``: what users do with the compiled kernels themselves."""

from __future__ import annotations

import json
import time
from typing import Any

import click
from rich.console import Console

from delegraph_numba_cpu import warmup
from delegraph_numba_cpu.cpu import level_named, supported_levels
from delegraph_numba_cpu.families import families
from delegraph_numba_cpu.levels import LEVELS, CpuLevel
from delegraph_numba_cpu.prebuilt import OBJECTS, prebuilt_file

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("numba")
def command() -> None:
    """Compile the kernels of the numba_cpu delegate, or see where they are."""


@command.command("warmup", short_help="Compile all kernels now.")
@click.option(
    "--cpu",
    type=click.Choice(["auto", *LEVELS, "all"]),
    default="auto",
    show_default=True,
    help="For which instructions; all means every level that this processor has.",
)
@json_option
def warm_up(cpu: str, as_json: bool) -> None:
    """Compile all kernels now, so that no model has to wait for them.

    Kernels that are in the cache already are not compiled again.
    """
    names = [level.name for level in supported_levels()] if cpu == "all" else [cpu]
    answers = []
    for name in names:
        level = level_named(name)
        start = time.perf_counter()
        with Console(stderr=True).status(f"compiling for {level.name}"):
            warmup(name)
        count = len(families())
        answer = {"level": level.name, "families": count, "seconds": time.perf_counter() - start}
        answers.append(answer | _place(level))
        if not as_json:
            seconds, place = answer["seconds"], answers[-1]["place"]
            click.echo(f"{level.name}: {count} families of kernels, {seconds:.1f} s, in {place}")
    if as_json:
        click.echo(json.dumps({"levels": answers}, indent=2))


@command.command("info", short_help="Show which instructions and kernels are used.")
@json_option
def info(as_json: bool) -> None:
    """Show which instructions this processor has, and where their kernels come from.

    The first level is used unless the option cpu names another. Its kernels come in a library with
    this package, or are compiled once and kept in the cache.
    """
    answers = [{"level": level.name} | _place(level) for level in supported_levels()]
    if as_json:
        click.echo(json.dumps({"levels": answers}, indent=2))
        return
    for answer in answers:
        megabytes = answer["bytes"] / 1e6
        words = {"library": "library", "objects": "object code", "cache": "compiled when needed"}
        how = words[answer["source"]]
        click.echo(f"{answer['level']}: {how}, {megabytes:.1f} MB, in {answer['place']}")


def _place(level: CpuLevel) -> dict[str, Any]:
    """Return where a level's kernels come from, what that is, and how large."""
    path = prebuilt_file(level)
    if path is not None:
        source = "objects" if path.suffix == OBJECTS else "library"
        return {"source": source, "place": str(path), "bytes": path.stat().st_size}
    from delegraph_numba_cpu.cache import kernel_cache  # imports llvmlite

    cache = kernel_cache(level)
    size = sum(entry.size for entry in cache.entries())
    return {"source": "cache", "place": str(cache.folder), "bytes": size}
