"""Levels: the sets of processor instructions that kernels are compiled for."""

from __future__ import annotations


class CpuLevel:
    """A level: a set of processor instructions that kernels are compiled for, such as ``avx2``.

    It is a plain class, since creating a named tuple takes longer than importing this module.

    Attributes:
        name: value of the option ``cpu``.
        target: LLVM's name of a processor with these instructions.
        needs: LLVM's names of further features that kernels use; a processor must have all.
        vector_bytes: width of the vectors that kernels use.
        machine: type of processor, as ``platform.machine`` names it; empty for any.
        has_tiles: whether kernels use tile registers, for which a process needs permission.
        byte_shift: number that kernels subtract from unsigned activations before products: 128 if
            the level has only products of signed bytes, otherwise 0.
        has_int16_pairs: whether bytes are multiplied as int16, and products added in pairs, for
            lack of products of bytes.
    """

    def __init__(
        self,
        name: str,
        target: str,
        needs: tuple[str, ...],
        vector_bytes: int,
        machine: str = "",
        has_tiles: bool = False,
        byte_shift: int = 0,
        has_int16_pairs: bool = False,
    ) -> None:
        self.name, self.target, self.needs = name, target, needs
        self.vector_bytes, self.machine = vector_bytes, machine
        self.has_tiles, self.byte_shift = has_tiles, byte_shift
        self.has_int16_pairs = has_int16_pairs


_AVX2 = ("avx2", "fma", "f16c", "bmi2")
_AVX512_VNNI = ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni", "fma")
_AVX512_VBMI = (*_AVX512_VNNI, "avx512vbmi")
_AMX_INT8 = (*_AVX512_VBMI, "amx-tile", "amx-int8")

# The features that LLVM may use of a Cortex-A76; Neoverse N1 and Apple's M1 have them too.
_NEON_DOTPROD = ("neon", "lse", "rdm", "rcpc", "fullfp16", "dotprod")
_NEON_I8MM = (*_NEON_DOTPROD, "i8mm")

LEVELS = {
    level.name: level
    for level in (
        CpuLevel("amx_int8", "cascadelake", _AMX_INT8, 64, "x86_64", has_tiles=True),
        CpuLevel("avx512_vbmi", "cascadelake", _AVX512_VBMI, 64, "x86_64"),
        CpuLevel("avx512_vnni", "cascadelake", _AVX512_VNNI, 64, "x86_64"),
        CpuLevel("avx_vnni", "haswell", (*_AVX2, "avxvnni"), 32, "x86_64"),
        CpuLevel("avx2", "haswell", _AVX2, 32, "x86_64", has_int16_pairs=True),
        CpuLevel("neon_i8mm", "cortex-a76", _NEON_I8MM, 16, "aarch64"),
        CpuLevel("neon_dotprod", "cortex-a76", _NEON_DOTPROD, 16, "aarch64", byte_shift=128),
        CpuLevel("neon", "cortex-a72", ("neon",), 16, "aarch64", byte_shift=128),
        CpuLevel("generic", "generic", (), 16),
    )
}
"""Mapping from a level's name to the level; of one type of processor, the fastest comes first.

``generic`` is plain vector code, for any processor.
"""
