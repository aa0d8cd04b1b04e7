"""XNNPACK limited to AVX2, on a processor that has more.

XNNPACK and ruy ask cpuinfo, a library inside LiteRT, what the processor has. cpuinfo keeps the
answer in the variable ``cpuinfo_isa``, with a byte for each feature. XNNPACK reads it when the
first interpreter is made. ``limit_to_avx2`` clears the bytes of AVX-VNNI, AVX-512 and AMX before.
It needs Linux on x86-64, and a LiteRT whose library has a symbol table.
"""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path

import numpy as np

LIBRARY = "libpywrap_litert_common.so"
VARIABLE, INITIALIZE = "cpuinfo_isa", "cpuinfo_initialize"

FIRST = 16
"""Byte of the first field below in ``cpuinfo_isa``."""

FIELDS = [
    "pni", "ssse3", "sse4_1", "sse4_2", "sse4a", "misalignsse", "avx", "avx_vnni", "fma", "fma4",
    "xop", "f16c", "avx2", "avx512f", "avx512pf", "avx512er", "avx512cd", "avx512dq", "avx512bw",
    "avx512vl", "avx512ifma", "avx512vbmi", "avx512_vbmi2", "avx512_bitalg", "avx512_vpopcntdq",
    "avx512_vnni", "avx512_bf16", "avx512_fp16",
]  # fmt: skip
"""Fields of ``cpuinfo_isa`` in their order, by their names in ``/proc/cpuinfo``.

Source: cpuinfo's ``cpuinfo.h``, ``struct cpuinfo_x86_isa``.
"""

SYMBOL = struct.Struct("<IBBHQQ")
"""Entry of a symbol table: name, info, other, section, value, size."""

SYMBOL_TABLE, ZEROED = 2, 8
"""Types of sections: symbols, and variables that begin as zeros."""


class LimitError(RuntimeError):
    """Error: XNNPACK cannot be limited to AVX2 here."""


def limit_to_avx2() -> None:
    """Clear the features beyond AVX2 in cpuinfo's answer, in this process.

    Raises:
        LimitError: LiteRT's library is not as this module knows it.
    """
    library = Library()
    if not ctypes.CFUNCTYPE(ctypes.c_bool)(library.address(INITIALIZE))():
        raise LimitError("cpuinfo in LiteRT cannot read this processor: leave XNNPACK unlimited")
    size = library.symbols[VARIABLE][1]
    fields = (ctypes.c_uint8 * size).from_address(library.address(VARIABLE))
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    flags = next(line for line in text.splitlines() if line.startswith("flags")).split()
    found = fields[FIRST : FIRST + len(FIELDS)]
    if wrong := [n for n, is_set in zip(FIELDS, found, strict=True) if is_set != (n in flags)]:
        raise LimitError(
            f"{VARIABLE} in {LIBRARY} and /proc/cpuinfo disagree about {', '.join(wrong)}: "
            "correct FIELDS in xnnpack_avx2.py by the cpuinfo.h of this LiteRT"
        )
    fields[FIRST + FIELDS.index("avx_vnni")] = 0
    for position in range(FIRST + FIELDS.index("avx2") + 1, size):
        fields[position] = 0  # also AMX, and what XNNPACK uses beside AVX-512 only


def instructions_of_kernels() -> set[str]:
    """Return the sets of instructions in the names of the kernels that XNNPACK has chosen.

    XNNPACK keeps the kernels' addresses in variables.
    """
    library = Library()
    start, size = library.zeroed
    held = np.frombuffer(ctypes.string_at(library.base + start, size // 8 * 8), np.uint64)
    words = {int(word) - library.base for word in np.unique(held)}
    chosen = [n for n, (at, _) in library.symbols.items() if at in words and n.startswith("xnn_")]
    parts = {part for name in chosen for part in name.split("_")}
    return {part for part in parts if part.startswith(("avx", "fma", "sse"))}


class Library:
    """LiteRT's library in this process.

    Attributes:
        base: address at which it is loaded.
        symbols: mapping from each name to the offset and the size.
        zeroed: offset and size of the variables that begin as zeros.
    """

    def __init__(self) -> None:
        from ai_edge_litert import interpreter  # loads the library

        path = Path(interpreter.__file__).with_name(LIBRARY)
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        starts = [int(line.split("-")[0], 16) for line in maps if line.endswith(f"/{LIBRARY}")]
        if not starts:
            raise LimitError(f"LiteRT has not loaded {LIBRARY}: its libraries have other names")
        self.base = min(starts)
        self.symbols, self.zeroed = _symbols(path.read_bytes())
        if absent := sorted({VARIABLE, INITIALIZE} - set(self.symbols)):
            raise LimitError(f"{path} has no symbol {absent[0]}: another LiteRT may have it")

    def address(self, name: str) -> int:
        """Return the address of a symbol in this process."""
        return self.base + self.symbols[name][0]


def _symbols(data: bytes) -> tuple[dict[str, tuple[int, int]], tuple[int, int]]:
    """Return the symbols of a 64-bit ELF file, and the place of its zeroed variables.

    Source: the ELF-64 object file format, ``Elf64_Ehdr``, ``Elf64_Shdr`` and ``Elf64_Sym``.
    """
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    # Fields: name, type, flags, address, offset, size, link, info, alignment, size of an entry.
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + size * i) for i in range(count)]
    symbols, zeroed = {}, (0, 0)
    for _, kind, _, address, offset, length, link, *_ in sections:
        if kind == SYMBOL_TABLE:
            names = data[sections[link][4] :]
            for name, _, _, section, value, extent in SYMBOL.iter_unpack(data[offset:][:length]):
                if section:
                    symbols[names[name : names.index(b"\0", name)].decode()] = value, extent
        elif kind == ZEROED and length > zeroed[1]:
            zeroed = address, length
    return symbols, zeroed
