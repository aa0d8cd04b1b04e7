"""Delegates and commands of this distribution; Delegraph imports this light module to list them."""

from __future__ import annotations

import os
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
    """Whether the kernels for the level that ``auto`` selects came compiled with the package.

    It is True as well if no level can be selected, since applying the delegate then says why.
    """
    from delegraph.errors import DelegateError
    from delegraph_numba_cpu.library.cpu import level_named
    from delegraph_numba_cpu.library.prebuilt import has_file

    try:
        level = level_named("auto")
    except DelegateError:  # the user sees this error when the delegate is applied
        return True
    return has_file(level)


def advice() -> list[tuple[str, str]]:
    """Return each reason why kernels are slower than this processor allows, with its remedy.

    If they are not, the list has the level of instructions, without a remedy.
    """
    from delegraph.errors import DelegateError
    from delegraph_numba_cpu.library.cpu import VARIABLE, level_named, supported_levels
    from delegraph_numba_cpu.library.prebuilt import has_file

    best = supported_levels()[0]
    try:
        level = level_named("auto")
    except DelegateError as error:
        return [(str(error), f"unset {VARIABLE}")]
    if not has_file(level):
        text = "has no prebuilt kernels: they are compiled when models first need them"
        return [(text, "delegraph numba warmup")]
    if level != best and os.environ.get(VARIABLE):
        text = f"{VARIABLE}={level.name} holds it back: this processor has {best.name}"
        return [(text, f"unset {VARIABLE}")]
    if level != best:
        text = f"has no prebuilt kernels for {best.name}, the best of this processor, only "
        remedy = f"delegraph numba warmup --cpu {best.name}, then -d numba_cpu:cpu={best.name}"
        return [(f"{text}{level.name}", remedy)]
    return [(f"kernels of the level {level.name}, the best of this processor", "")]


def cache_versions() -> dict[str, list[str]]:
    """Return the versions of cache files that this installation uses, by the name of their cache.

    The caches hold kept programs, digests of sources, and compiled kernels. Files of other versions
    are stale.
    """
    from delegraph_numba_cpu.codegen.cpu_levels import LEVELS
    from delegraph_numba_cpu.kept import keys

    found, programs = {"numba_cpu-sources": ["1", "2"]}, keys.version()
    if programs is not None:
        found[keys.NAMESPACE] = [programs]
    try:
        from delegraph_numba_cpu.library.cache import kernel_cache
    except ImportError:  # the compilers are not installed
        return found
    return found | {"numba_cpu": [kernel_cache(level).version for level in LEVELS.values()]}


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    """Return the delegates of this plugin."""
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
            advice=advice,
            cache_versions=cache_versions,
        )
    ]


def _load_command() -> click.Command:
    from delegraph_numba_cpu.command import command

    return command


@hookimpl
def delegraph_commands() -> list[CommandSpec]:
    """Return the commands of this plugin."""
    return [
        CommandSpec(
            "numba", "Kernels of numba_cpu: see, compile, and measure (roof).", _load_command
        )
    ]
