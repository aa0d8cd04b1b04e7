"""The most arithmetic that one core does: the ceiling that kernels are measured against.

A loop of the instructions that a level's kernels multiply with, on registers alone.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from delegraph.tools import all_times, interleave
from delegraph_numba_cpu.codegen.cpu_levels import CpuLevel
from delegraph_numba_cpu.library.cpu import level_named

ROUNDS = 200_000
CHAINS = 12
"""Independent sums: enough to hide the latency of one, few enough for registers."""


@dataclass(frozen=True, slots=True)
class Mix:
    """Instructions that make one step of a sum.

    Attributes:
        name: what assembly calls them.
        operations: of one step, a multiply-add being two.
        total: LLVM's type of a sum.
        factor: that of what is multiplied, of which bits are the same.
        step: LLVM code that makes ``%d{i}`` of the sum ``%c{i}`` and the factors ``%a`` and ``%b``.
        uses: declaration of the intrinsic.
    """

    name: str
    operations: int
    total: str
    factor: str
    step: str
    uses: str


def _fma(lanes: int) -> Mix:
    kind, function = f"<{lanes} x float>", f"@llvm.fma.v{lanes}f32"
    return Mix(
        "fma",
        2 * lanes,
        kind,
        kind,
        f"%d{{i}} = call {kind} {function}({kind} %a, {kind} %b, {kind} %c{{i}})",
        f"declare {kind} {function}({kind}, {kind}, {kind})",
    )


def _vpdpbusd(bits: int) -> Mix:
    total, factor = f"<{bits // 32} x i32>", f"<{bits // 8} x i8>"
    function = f"@llvm.x86.avx512.vpdpbusd.{bits}"
    return Mix(
        "vpdpbusd",
        bits // 4,
        total,
        factor,
        f"%d{{i}} = call {total} {function}({total} %c{{i}}, {factor} %a, {factor} %b)",
        f"declare {total} {function}({total}, {factor}, {factor})",
    )


_PAIRS = Mix(
    "vpmaddwd, vpaddd",
    32,
    "<8 x i32>",
    "<16 x i16>",
    # Each product takes the sum so far, or the compiler would multiply once, before the loop.
    "%e{i} = bitcast <8 x i32> %c{i} to <16 x i16>\n"
    "  %p{i} = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %e{i}, <16 x i16> %b)\n"
    "  %d{i} = add <8 x i32> %p{i}, %c{i}",
    "declare <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)",
)


def float32_mix(level: CpuLevel) -> Mix:
    """Return what float32 kernels of a level multiply with."""
    return _fma(level.vector_bytes // 4)


def int8_mix(level: CpuLevel) -> Mix | None:
    """Return what int8 kernels of a level multiply with, but for matrix registers."""
    if "avx512vnni" in level.needs:
        return _vpdpbusd(512)
    if "avxvnni" in level.needs:
        return _vpdpbusd(256)
    return _PAIRS if "avx2" in level.needs else None


@cache
def float32_peak(cpu: str = "auto") -> float:
    """Return GFLOP/s of one core at a level: fused multiply-adds, nothing else."""
    level = level_named(cpu)
    return _rate(float32_mix(level), level)


@cache
def int8_peak(cpu: str = "auto") -> float:
    """Return Gop/s of one core at a level: int8 products added up in int32; 0.0 if unknown."""
    level = level_named(cpu)
    mix = int8_mix(level)
    return 0.0 if mix is None else _rate(mix, level)


def _rate(mix: Mix, level: CpuLevel) -> float:
    """Return 10^9 operations a second, by the fewest seconds that the loop took."""
    engine = compiled(loop(mix), level)
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(
        engine.get_function_address("peak")
    )
    memory = ctypes.create_string_buffer(256)
    times = interleave({"loop": lambda: run(ROUNDS, memory)}, 0.2)
    return mix.operations * CHAINS * ROUNDS / float(all_times(times["loop"]).min()) / 1e9


def loop(mix: Mix) -> str:
    """Return the loop as LLVM's text: ``CHAINS`` sums that do not wait for each other."""
    total, chains = mix.total, range(CHAINS)
    phis = [f"%c{i} = phi {total} [zeroinitializer, %entry], [%d{i}, %loop]" for i in chains]
    steps = [mix.step.format(i=i) for i in chains]
    stores = [
        f"store volatile {total} %d{i}, ptr %memory, align 4"
        for i in chains
    ]  # fmt: skip
    body = "\n  ".join
    return f"""
define void @peak(i64 %n, ptr %memory) {{
entry:
  %a = load volatile {mix.factor}, ptr %memory, align 4
  %b = load volatile {mix.factor}, ptr %memory, align 4
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%following, %loop]
  {body(phis)}
  {body(steps)}
  %following = add i64 %i, 1
  %done = icmp eq i64 %following, %n
  br i1 %done, label %exit, label %loop
exit:
  {body(stores)}
  ret void
}}
{mix.uses}
"""


def compiled(text: str, level: CpuLevel) -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = ",".join(f"+{feature}" for feature in level.needs)
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=level.target, features=features, opt=3
    )
    module = llvm.parse_assembly(text)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


if __name__ == "__main__":
    print(f"float32 {float32_peak():6.1f} GFLOP/s, int8 {int8_peak():6.1f} Gop/s, one core")
