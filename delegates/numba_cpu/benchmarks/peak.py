"""The most arithmetic that one core does: the ceiling that kernels are measured against."""

from __future__ import annotations

import ctypes
from functools import cache

import llvmlite.binding as llvm

from delegraph.tools import all_times, interleave

ROUNDS = 200_000
CHAINS = 12
"""Independent sums: enough to hide the latency of one, few enough for registers."""

_LOOP = """
define void @peak(i64 %n, ptr %out, {vector} %a) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i2, %loop]
{phis}
{steps}
  %i2 = add i64 %i, 1
  %done = icmp eq i64 %i2, %n
  br i1 %done, label %exit, label %loop
exit:
{sums}
  store {vector} %t{last}, ptr %out, align 4
  ret void
}}
declare {vector} @{function}({types})
"""


@cache
def float32_peak() -> float:
    """Return GFLOP/s of one core: fused multiply-adds of float32 vectors, nothing else."""
    features = llvm.get_host_cpu_features()
    lanes = 16 if features.get("avx512f") else 8 if features.get("avx2") else 4
    seconds = _measure(f"<{lanes} x float>", f"llvm.fma.v{lanes}f32", "", "fadd")
    return 2 * lanes * CHAINS * ROUNDS / seconds / 1e9


@cache
def int8_peak() -> float:
    """Return Gop/s of one core: int8 dot products into int32; 0.0 without VNNI."""
    if not llvm.get_host_cpu_features().get("avx512vnni"):
        return 0.0
    seconds = _measure("<16 x i32>", "llvm.x86.avx512.vpdpbusd.512", "<64 x i8>", "add")
    return 2 * 64 * CHAINS * ROUNDS / seconds / 1e9


def _measure(vector: str, function: str, operands: str, plus: str) -> float:
    """Return the fewest seconds that the loop took."""
    engine = _compile(_loop(vector, function, operands, plus))
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(
        engine.get_function_address("entry_point")
    )
    out = ctypes.create_string_buffer(256)
    times = interleave({"loop": lambda: run(ROUNDS, out)}, 0.2)
    return float(all_times(times["loop"]).min())


def _loop(vector: str, function: str, operands: str, plus: str) -> str:
    """Return the loop as LLVM's text: ``CHAINS`` sums that do not wait for each other."""
    first = f"{vector} %c{{i}}" if operands else f"{vector} %a, {vector} %a, {vector} %c{{i}}"
    arguments = first + (f", {operands} %b, {operands} %b" if operands else "")
    types = f"{vector}, " + (f"{operands}, {operands}" if operands else f"{vector}, {vector}")
    chains = range(CHAINS)
    phis = "\n".join(
        f"  %c{i} = phi {vector} [zeroinitializer, %entry], [%d{i}, %loop]" for i in chains
    )
    steps = "\n".join(
        f"  %d{i} = call {vector} @{function}({arguments.format(i=i)})" for i in chains
    )
    sums = [f"  %t0 = {plus} {vector} %d0, %d0"]
    sums += [f"  %t{i} = {plus} {vector} %t{i - 1}, %d{i}" for i in chains[1:]]
    text = _LOOP.format(
        vector=vector,
        phis=phis,
        steps=steps,
        sums="\n".join(sums),
        last=CHAINS - 1,
        function=function,
        types=types,
    )
    if operands:
        text = text.replace("entry:\n", f"entry:\n  %b = bitcast {vector} %a to {operands}\n", 1)
    one = "float 1.0" if "float" in vector else "i32 16843009"
    lanes = int(vector[1:].split()[0])
    filled = f"<{', '.join([one] * lanes)}>"
    return text + (
        f"define void @entry_point(i64 %n, ptr %out) {{\n"
        f"  call void @peak(i64 %n, ptr %out, {vector} {filled})\n  ret void\n}}\n"
    )


def _compile(text: str) -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3
    )
    module = llvm.parse_assembly(text)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


if __name__ == "__main__":
    print(f"float32 {float32_peak():6.1f} GFLOP/s, int8 {int8_peak():6.1f} Gop/s, one core")
