"""Systems and processors for which LLVM makes object code: those of this machine, or others."""

from __future__ import annotations

import llvmlite.binding as llvm

from delegraph_numba_cpu.codegen.host_platform import host_machine


def initialize(machine: str) -> None:
    """Load LLVM's code generator for a type of processor.

    Args:
        machine: the type, named as in ``host_platform.py``.
    """
    if machine == host_machine():
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()


def triple_of(machine: str) -> str:
    """Return LLVM's target triple for a type of processor.

    For this machine's type of processor, the system is this machine's; for other types, it is
    Linux.
    """
    if machine == host_machine():
        triple: str = llvm.get_process_triple()
        return triple
    return f"{machine}-unknown-linux-gnu"
