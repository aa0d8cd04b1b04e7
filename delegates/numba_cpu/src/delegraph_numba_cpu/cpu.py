"""What the processor can do, as far as kernels differ by it."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from delegraph.errors import DelegateError


@dataclass(frozen=True, slots=True)
class CpuLevel:
    """Instructions that kernels are compiled for.

    Attributes:
        name: what the option ``cpu`` calls it.
        target: LLVM's name of a processor that has them; empty for the host itself.
        needs: features that LLVM must report for the host.
        vector_bytes: width of the vectors that kernels use.
        machine: processor family, as ``platform.machine`` calls it; empty for any.
        may_use: features that kernels use where the host has them.
        has_tiles: whether kernels use matrix registers, for which a process must ask.
    """

    name: str
    target: str
    needs: tuple[str, ...]
    vector_bytes: int
    machine: str = ""
    may_use: tuple[str, ...] = ()
    has_tiles: bool = False

    def features(self) -> tuple[str, ...]:
        """Return the features that code for this level may use on this host."""
        host = llvm.get_host_cpu_features()
        return (*self.needs, *(feature for feature in self.may_use if host.get(feature)))


_AVX512_VNNI = ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni", "fma")

LEVELS = {
    level.name: level
    for level in (
        CpuLevel(
            "amx_int8",
            "cascadelake",
            (*_AVX512_VNNI, "amx-tile", "amx-int8"),
            64,
            "x86_64",
            ("avx512vbmi",),
            has_tiles=True,
        ),
        CpuLevel("avx512_vnni", "cascadelake", _AVX512_VNNI, 64, "x86_64", ("avx512vbmi",)),
        CpuLevel("avx2", "haswell", ("avx2", "fma", "f16c", "bmi2"), 32, "x86_64"),
        CpuLevel("generic", "", (), 16),
    )
}
"""The levels, the fastest first. ``generic`` is plain vector code, for any processor."""


@cache
def supported_levels() -> tuple[CpuLevel, ...]:
    """Return the levels that this processor has, the fastest first; the last is ``generic``.

    LLVM aborts the process when it meets an instruction it does not have, so this decides before
    anything is compiled.
    """
    features = {name for name, has in llvm.get_host_cpu_features().items() if has}
    machine = platform.machine().lower().replace("amd64", "x86_64")
    return tuple(
        level
        for level in LEVELS.values()
        if level.machine in ("", machine)
        and features.issuperset(level.needs)
        and not (level.has_tiles and not may_use_tiles())
    )


def may_use_tiles() -> bool:
    """Return whether the system lets this process use matrix registers; Linux has to be asked.

    Source:
        Using XSTATE features in user space applications, Documentation/arch/x86/xstate.rst of
        Linux.
    """
    if sys.platform != "linux":
        return False
    arch_prctl, request_permission, tile_data = 158, 0x1023, 18
    refused: int = ctypes.CDLL(None).syscall(arch_prctl, request_permission, tile_data)
    return not refused


def level_named(name: str) -> CpuLevel:
    """Return the level that the option ``cpu`` asks for; ``auto`` is the best there is.

    Raises:
        DelegateError: this processor does not have it.
    """
    levels = supported_levels()
    if name == "auto":
        return levels[0]
    for level in levels:
        if level.name == name:
            return level
    has = ", ".join(level.name for level in levels)
    raise DelegateError(f"cpu={name}: this processor has only: {has}")


@cache
def physical_cores() -> int:
    """Return how many cores this process may use, counting two threads of a core once; >= 1.

    As it was when first asked: what a process may use seldom changes, and reading it takes long.
    """
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    if usable is None:
        return max(1, (os.cpu_count() or 1) // 2)
    siblings = set()
    for cpu in usable:
        path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        try:
            with open(path, encoding="ascii") as file:
                siblings.add(file.read().strip())
        except OSError:
            siblings.add(str(cpu))
    return max(1, len(siblings))
