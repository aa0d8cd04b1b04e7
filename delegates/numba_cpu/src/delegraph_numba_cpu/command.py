"""``delegraph numba``: what users do with the compiled kernels themselves."""

from __future__ import annotations

import time

import click

from delegraph_numba_cpu import warmup
from delegraph_numba_cpu.cache import cache_folder
from delegraph_numba_cpu.cpu import LEVELS, level_named, supported_levels
from delegraph_numba_cpu.families import families


@click.group("numba")
def command() -> None:
    """Compile the kernels of the numba_cpu delegate, or see where they are."""


@command.command("warmup")
@click.option(
    "--cpu",
    type=click.Choice(["auto", *LEVELS, "all"]),
    default="auto",
    show_default=True,
    help="For which instructions; all means every level that this processor has.",
)
def warm_up(cpu: str) -> None:
    """Compile all kernels now, so that no model has to wait for them.

    Kernels that are in the cache already are not compiled again.
    """
    names = [level.name for level in supported_levels()] if cpu == "all" else [cpu]
    for name in names:
        level = level_named(name)
        start = time.perf_counter()
        warmup(name)
        seconds = time.perf_counter() - start
        click.echo(
            f"{level.name}: {len(families())} families of kernels, {seconds:.1f} s, in "
            f"{cache_folder(level)}"
        )


@command.command("info")
def info() -> None:
    """Show which instructions are used, and where compiled kernels are kept."""
    for level in supported_levels():
        folder = cache_folder(level)
        files = sorted(folder.glob("*.kernels")) if folder.is_dir() else []
        size = sum(path.stat().st_size for path in files)
        click.echo(f"{level.name}: {len(files)} files, {size / 1e6:.1f} MB, in {folder}")
