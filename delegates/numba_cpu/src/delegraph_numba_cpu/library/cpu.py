"""Features of the processor that decide which kernels can run."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from functools import cache
from importlib import import_module

from delegraph_numba_cpu.codegen.cpu_levels import LEVELS, CpuLevel
from delegraph_numba_cpu.codegen.host_platform import host_machine
from delegraph_numba_cpu.library.prebuilt import has_file


@cache
def supported_levels() -> tuple[CpuLevel, ...]:
    """Return the instruction-set levels that this processor supports, such as ``avx2``.

    The fastest one is first; the last one is ``generic``.
    """
    features = host_features()
    return tuple(level for level in LEVELS.values() if not lacking(level, features))


def lacking(level: CpuLevel, features: frozenset[str]) -> tuple[str, ...]:
    """Return the processor features that a level needs and this processor lacks.

    Args:
        level: an instruction set that kernels can be compiled for, such as ``avx2``.
        features: the processor's features, from :func:`host_features`.

    Returns:
        LLVM's names of the features; empty if none is lacking. For a level of another type of
        processor, only the name of that type. If the system forbids tile registers, a text that
        says so.
    """
    if level.machine not in ("", host_machine()):
        return (level.machine,)
    if level.has_tiles and features.issuperset(level.needs) and not may_use_tiles():
        return ("the system's leave to use matrix registers",)
    return tuple(feature for feature in level.needs if feature not in features)


def host_features() -> frozenset[str]:
    """Return LLVM's names of those features of this processor that some level needs.

    Linux lists the features that processes may use, and so does macOS on ARM. On other systems
    NumPy knows them, except AVX-VNNI and AMX.
    """
    if host_machine() == "aarch64":
        return _features_of_arm()
    if sys.platform == "linux":
        return frozenset(_OF_LINUX.get(name, name) for name in _flags_of_linux())
    return frozenset(llvm_name for name, llvm_name in _OF_NUMPY if _numpy_features().get(name))


_OF_LINUX = {
    "avx_vnni": "avxvnni",
    "avx512_vnni": "avx512vnni",
    "avx512_vbmi": "avx512vbmi",
    "amx_tile": "amx-tile",
    "amx_int8": "amx-int8",
}
"""Mapping from a feature's name in ``/proc/cpuinfo`` to LLVM's name, where they differ."""

_OF_NUMPY = (
    ("AVX2", "avx2"),
    ("AVX2", "bmi2"),  # every processor with one of them has the other
    ("F16C", "f16c"),
    ("FMA3", "fma"),
    ("AVX512F", "avx512f"),
    ("AVX512BW", "avx512bw"),
    ("AVX512DQ", "avx512dq"),
    ("AVX512VL", "avx512vl"),
    ("AVX512VNNI", "avx512vnni"),
    ("AVX512VBMI", "avx512vbmi"),
)


def _flags_of_linux() -> list[str]:
    """Return the features of the first processor core, as ``/proc/cpuinfo`` names them.

    Reading the features of all cores may take long.
    """
    with (
        contextlib.suppress(OSError),
        open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file,
    ):
        for line in file:
            name, _, value = line.partition(":")
            if name.strip() in ("flags", "Features"):
                return value.split()
    return []


_AT_HWCAP, _AT_HWCAP2 = 16, 26

_OF_ARM = (
    ("lse", _AT_HWCAP, 8, "FEAT_LSE"),
    ("fullfp16", _AT_HWCAP, 10, "FEAT_FP16"),
    ("rdm", _AT_HWCAP, 12, "FEAT_RDM"),
    ("rcpc", _AT_HWCAP, 15, "FEAT_LRCPC"),
    ("dotprod", _AT_HWCAP, 20, "FEAT_DotProd"),
    ("i8mm", _AT_HWCAP2, 13, "FEAT_I8MM"),
)
"""Features of ARM: LLVM's name; word and bit of Linux's auxiliary vector; name on macOS.

Source:
    Linux, arch/arm64/include/uapi/asm/hwcap.h; Apple, Determining Instruction Set Characteristics.
"""


def _features_of_arm() -> frozenset[str]:
    """Return the features that all cores of an AArch64 processor have.

    Vectors of 16 bytes (NEON) are always present.
    """
    if sys.platform == "linux":
        words = {word: auxiliary_value(word) for word in (_AT_HWCAP, _AT_HWCAP2)}
        found = [name for name, word, bit, _ in _OF_ARM if words[word] >> bit & 1]
    elif sys.platform == "darwin":
        found = [name for name, _, _, key in _OF_ARM if system_value(f"hw.optional.arm.{key}")]
    else:
        found = []
    return frozenset(["neon", *found])


def auxiliary_value(kind: int) -> int:
    """Return the value of entry *kind* of Linux's auxiliary vector; 0 for an unknown *kind*."""
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.restype, getauxval.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
    value: int = getauxval(kind)
    return value


def system_value(name: str) -> int:
    """Return the value of the macOS system property *name*; 0 for an unknown name."""
    value, size = ctypes.c_int64(0), ctypes.c_size_t(8)
    arguments = name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
    return 0 if ctypes.CDLL(None).sysctlbyname(*arguments) else value.value


def _numpy_features() -> dict[str, bool]:
    """Return the features that NumPy has detected, from NumPy's private table.

    There is no public table. The result is empty if NumPy is missing, as in a build of a wheel
    without compilers.
    """
    for name in ("numpy._core", "numpy.core"):  # the second name is that of NumPy 1.26
        with contextlib.suppress(ImportError):
            module = import_module(f"{name}._multiarray_umath")
            features: dict[str, bool] = module.__cpu_features__
            return features
    return {}


def may_use_tiles() -> bool:
    """Whether this process may use AMX's tile registers; on Linux it has to ask for permission.

    Source:
        Using XSTATE features in user space applications, Documentation/arch/x86/xstate.rst of
        Linux.
    """
    if sys.platform != "linux":
        return False
    arch_prctl, request_permission, tile_data = 158, 0x1023, 18
    refused: int = ctypes.CDLL(None).syscall(arch_prctl, request_permission, tile_data)
    return not refused


VARIABLE = "DELEGRAPH_NUMBA_CPU"
"""Name of the environment variable with the level that ``auto`` stands for."""


def level_named(name: str) -> CpuLevel:
    """Return the instruction-set level that a value of the delegate's option ``cpu`` names.

    ``auto`` stands for the level that the environment variable :data:`VARIABLE` names. Without the
    variable, it is the best level with prebuilt kernels; if there are none, the best level.

    Raises:
        DelegateError: this processor does not support the level.
    """
    levels, asked = supported_levels(), f"cpu={name}"
    if name == "auto":
        name = os.environ.get(VARIABLE) or _with_kernels(levels).name
        asked = f"{VARIABLE}={name}"
    for level in levels:
        if level.name == name:
            return level
    from delegraph.errors import DelegateError  # imported here: a wheel is built without the core

    has = ", ".join(level.name for level in levels)
    raise DelegateError(f"{asked}: this processor has only: {has}")


def _with_kernels(levels: tuple[CpuLevel, ...]) -> CpuLevel:
    """Return the first of *levels* whose kernels came prebuilt with this package.

    If no level has prebuilt kernels, return the first level.
    """
    ready = (level for level in levels if has_file(level))
    return next(ready, levels[0])


def usable_processors() -> int:
    """Return the number of processors that this process may use; a container may have few."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def physical_cores() -> int:
    """Return the number of physical cores that this process may use; >= 1.

    The number is read once, since reading it is slow and it seldom changes.
    """
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    if usable is None:
        return max(1, (os.cpu_count() or 1) // 2)
    siblings = set()
    for cpu in usable:
        path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        try:
            with open(path, encoding="utf-8") as file:
                siblings.add(file.read().strip())
        except OSError:
            siblings.add(str(cpu))
    return max(1, len(siblings))
