"""The delegate of ``delegraph compile``: it writes programs to model files, and runs none.

A written program depends only on the name and the properties of its level. Programs of all levels
can therefore be made on any machine, without the level's kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from delegraph import DelegateContext, Node, SimpleDelegateKernelInterface
from delegraph.errors import DelegateError
from delegraph_numba_cpu.codegen.cpu_levels import LEVELS, CpuLevel
from delegraph_numba_cpu.delegate import NumbaCpuDelegate, NumbaCpuKernel
from delegraph_numba_cpu.kept.program_file import IS_USABLE
from delegraph_numba_cpu.library.cpu import level_named
from delegraph_numba_cpu.library.kernel_library import Library


class ProgramCompiler(NumbaCpuDelegate):
    """Delegate that compiles partitions into programs for a model file, and runs none.

    It claims the same nodes as numba_cpu, for any instruction-set level.
    """

    def chosen_level(self) -> CpuLevel:
        """Return the instruction-set level of the option ``cpu``; the best for ``auto``."""
        name = self.options.cpu
        return level_named(name) if name == "auto" else LEVELS[name]

    def wants_programs(self) -> bool:
        """Whether programs may be stored: always, since the user asked for stored programs."""
        return IS_USABLE

    def open_library(self) -> Library:
        """Return a library that only has the names of kernels, because no program is run here."""
        return NamedKernels(self.level)

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return _Unrunnable(self)


class NamedKernels(Library):
    """Library without compiled kernels, used while programs are compiled for model files."""

    def __init__(self, level: CpuLevel) -> None:
        self.level = level

    def address(self, family: str, kernel: str) -> int:
        """Return 0 as the address of any kernel."""
        return 0

    def load(self, families: Iterable[str], *_: Any, **__: Any) -> None:
        """Do nothing, as no kernels of *families* are needed."""


class _Unrunnable(NumbaCpuKernel):
    def eval(self, context: DelegateContext, node: Node) -> None:
        raise DelegateError("it is compiled ahead of time and not run", phase="eval")

    def native_eval(self, context: DelegateContext, node: Node) -> Callable[[], None] | None:
        return None
