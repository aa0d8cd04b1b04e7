"""For which systems and processors LLVM makes object code: this one, or another's."""

from __future__ import annotations

import llvmlite.binding as llvm

from delegraph_numba_cpu.codegen.host_platform import host_machine


def initialize(machine: str) -> None:
    """Make LLVM ready for a family of processors, named as in ``host_platform.py``."""
    if machine == host_machine():
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()


def triple_of(machine: str) -> str:
    """Return LLVM's words for this system on a family of processors; another's is Linux."""
    if machine == host_machine():
        triple: str = llvm.get_process_triple()
        return triple
    return f"{machine}-unknown-linux-gnu"
