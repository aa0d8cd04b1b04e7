"""What this distribution offers; Delegraph imports it to list plugins, so it stays light."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from delegraph import CommandSpec, DelegateSpec, hookimpl

if TYPE_CHECKING:
    import click

    from delegraph_numba_cpu.delegate import NumbaCpuDelegate

DELEGRAPH_API = 1


@dataclass(frozen=True)
class NumbaCpuOptions:
    """What users may set: ``--delegate numba_cpu:exact=false``, or a dict in Python."""

    exact: bool = field(
        default=True,
        metadata={"help": "integer results bit for bit; false allows 1 unit per operator"},
    )
    num_threads: int = field(
        default=0,
        metadata={"help": "threads; 0 means the interpreter's, or all cores when it says nothing"},
    )
    cpu: Literal["auto", "amx_int8", "avx512_vnni", "avx2", "generic"] = field(
        default="auto", metadata={"help": "instructions to use; auto takes the best there are"}
    )

    def __post_init__(self) -> None:
        if self.num_threads < 0:
            raise ValueError(f"num_threads is {self.num_threads}, expected 0 or more")


def _load() -> type[NumbaCpuDelegate]:
    from delegraph_numba_cpu.delegate import NumbaCpuDelegate

    return NumbaCpuDelegate


@hookimpl
def delegraph_delegates() -> list[DelegateSpec]:
    """Return what this plugin offers."""
    return [
        DelegateSpec("numba_cpu", "the CPU, by kernels that Numba compiles", _load, NumbaCpuOptions)
    ]


def _load_command() -> click.Command:
    from delegraph_numba_cpu.command import command

    return command


@hookimpl
def delegraph_commands() -> list[CommandSpec]:
    """Return the commands of this plugin."""
    return [CommandSpec("numba", "Compile the kernels of numba_cpu, or see them.", _load_command)]
