"""``delegraph numba``: what users do with the compiled kernels themselves."""

from __future__ import annotations

import json
import time

import click
from rich.console import Console

from delegraph_numba_cpu import warmup
from delegraph_numba_cpu.cache import kernel_cache
from delegraph_numba_cpu.cpu import LEVELS, level_named, supported_levels
from delegraph_numba_cpu.families import families

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
        seconds, folder = time.perf_counter() - start, str(kernel_cache(level).folder)
        count = len(families())
        answers.append(
            {"level": level.name, "families": count, "seconds": seconds, "folder": folder}
        )
        if not as_json:
            click.echo(f"{level.name}: {count} families of kernels, {seconds:.1f} s, in {folder}")
    if as_json:
        click.echo(json.dumps({"levels": answers}, indent=2))


@command.command("info", short_help="Show which instructions and caches are used.")
@json_option
def info(as_json: bool) -> None:
    """Show which instructions are used, and where compiled kernels are kept."""
    answers = []
    for level in supported_levels():
        cache = kernel_cache(level)
        folder, files = cache.folder, cache.entries()
        size = sum(entry.size for entry in files)
        answers.append(
            {"level": level.name, "files": len(files), "bytes": size, "folder": str(folder)}
        )
        if not as_json:
            click.echo(f"{level.name}: {len(files)} files, {size / 1e6:.1f} MB, in {folder}")
    if as_json:
        click.echo(json.dumps({"levels": answers}, indent=2))
