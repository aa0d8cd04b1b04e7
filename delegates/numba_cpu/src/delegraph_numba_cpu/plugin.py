"""What this distribution offers; Delegraph imports it to list plugins, so it stays light."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph import CommandSpec, DelegateSpec, hookimpl
from delegraph_numba_cpu.options import NumbaCpuOptions

if TYPE_CHECKING:
    import click

    from delegraph_numba_cpu.delegate import NumbaCpuDelegate

DELEGRAPH_API = 1


def _load() -> type[NumbaCpuDelegate]:
    from delegraph_numba_cpu.delegate import NumbaCpuDelegate

    return NumbaCpuDelegate


def _load_compiling() -> type[NumbaCpuDelegate]:
    from delegraph_numba_cpu.ahead_of_time import ProgramCompiler

    return ProgramCompiler


def is_ready() -> bool:
    """Return whether the kernels of the level that ``auto`` stands for are prebuilt."""
    from delegraph.errors import DelegateError
    from delegraph_numba_cpu.library.cpu import level_named
    from delegraph_numba_cpu.library.prebuilt import has_file

    try:
        level = level_named("auto")
    except DelegateError:  # users see it as soon as the delegate is applied
        return True
    return has_file(level)


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    """Delegates of this plugin."""
    summary = "the CPU, by kernels that Numba compiles"
    return [
        DelegateSpec(
            "numba_cpu",
            summary,
            _load,
            NumbaCpuOptions,
            default_rank=0,
            is_ready=is_ready,
            load_compiling=_load_compiling,
        )
    ]


def _load_command() -> click.Command:
    from delegraph_numba_cpu.command import command

    return command


@hookimpl
def delegraph_commands() -> list[CommandSpec]:
    """Return the commands of this plugin."""
    return [CommandSpec("numba", "Compile the kernels of numba_cpu, or see them.", _load_command)]
