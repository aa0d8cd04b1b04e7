"""Predicts how fast the inner loops for AArch64 are: ``python predict_arm.py [--write]``.

Compiles the products of each level, on any machine, takes their inner loops out of the object code,
and asks ``llvm-mca`` how many cycles they take on a core, as far as LLVM knows it: with all data in
the first cache. The peak is what it says of a loop of the same instructions on registers alone.

It needs ``llvm-mca`` and ``llvm-objdump`` of LLVM 17 or later, as in Debian's packages llvm-19.
``--write`` puts the table into README.md.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from delegraph_numba_cpu.codegen.cpu_levels import LEVELS
from delegraph_numba_cpu.codegen.object_code import unpack
from delegraph_numba_cpu.library.compile_processes import compile_side_by_side

README = Path(__file__).parents[1] / "README.md"
START, END = "<!-- Written by benchmarks/predict_arm.py -->\n", "<!-- to here -->\n"

VERSIONS = ("", "-22", "-21", "-20", "-19", "-18", "-17")
ITERATIONS = 200

Instruction = tuple[int, str]
"""An address and the words there."""


@dataclass(frozen=True)
class Loop:
    """A loop to find, and the peak to compare it with.

    Attributes:
        what: for the table.
        level: whose object code.
        family: whose kernels.
        kernel: the kernel.
        instruction: whose products are counted.
        peak: instructions of the peak, for accumulator ``{acc}`` and temporary ``{other}``.
        chains: accumulators of the peak, and temporaries, which no two of them share.
        cores: LLVM's names of processors.
    """

    what: str
    level: str
    family: str
    kernel: str
    instruction: str
    peak: tuple[str, ...]
    chains: int
    cores: tuple[str, ...]


_FMLA = ("fmla v{acc}.4s, v30.4s, v31.s[0]",)
_SDOT = ("sdot v{acc}.4s, v30.16b, v31.4b[0]",)
_SUDOT = ("sudot v{acc}.4s, v30.16b, v31.4b[0]",)
_SMULL = ("smull v{other}.8h, v30.8b, v31.8b", "sadalp v{acc}.4s, v{other}.8h")

LOOPS = (
    Loop("float32", "neon", "conv_f32", "conv", "fmla", _FMLA, 16, ("cortex-a72",)),
    Loop("float32", "neon_dotprod", "conv_f32", "conv", "fmla", _FMLA, 16,
         ("cortex-a76", "neoverse-n1")),
    Loop("float32", "neon_i8mm", "conv_f32", "conv", "fmla", _FMLA, 24, ("neoverse-v1",)),
    Loop("int8", "neon", "conv_int8", "convolve", "smull", _SMULL, 14, ("cortex-a72",)),
    Loop("int8", "neon_dotprod", "conv_int8", "convolve", "sdot", _SDOT, 16,
         ("cortex-a76", "neoverse-n1")),
    Loop("int8", "neon_i8mm", "conv_int8", "convolve", "sudot", _SUDOT, 24, ("neoverse-v1",)),
)  # fmt: skip

NAMES = {"smull": "SMULL, SADALP"}


def main() -> None:
    """Print the table, or write it."""
    table = _table()
    if "--write" not in sys.argv[1:]:
        print(table, end="")
        return
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(START)
    README.write_text(before + START + table + END + rest.split(END)[1], encoding="utf-8")


def _table() -> str:
    lines = [
        "| products | level | core | instructions | cycles an iteration | share of the peak |",
        "|---|---|---|---|---|---|",
    ]
    for loop in LOOPS:
        body = inner_loop(_disassembled(loop), loop.instruction)
        count = _count(body, loop.instruction)
        for core in loop.cores:
            cycles = cycles_of(body, core)
            share = count / cycles / peak(loop, core)
            name = NAMES.get(loop.instruction, loop.instruction.upper())
            lines.append(
                f"| {loop.what} | `{loop.level}` | {core} | {count} {name} of {len(body)} "
                f"| {cycles:.1f} | {share:.0%} |"
            )
    return "\n".join(lines) + "\n"


def inner_loop(code: list[Instruction], instruction: str) -> list[str]:
    """Return the innermost loop with the most of an instruction, the shortest of several."""
    numbers = {address: i for i, (address, _) in enumerate(code)}
    spans = []
    for i, (address, words) in enumerate(code):
        jump = re.match(r"(?:b|b\.\w+|cbn?z|tbn?z)\s.*?0x([0-9a-f]+)", words)
        to = int(jump[1], 16) if jump else address + 1
        if to <= address and to in numbers:
            spans.append((numbers[to], i + 1))
    inner = [
        (first, last)
        for first, last in spans
        if not any((a, b) != (first, last) and first <= a and b <= last for a, b in spans)
    ]
    bodies = [[words for _, words in code[first:last]] for first, last in inner]
    return max(bodies, key=lambda body: (_count(body, instruction), -len(body)))


def peak(loop: Loop, core: str) -> float:
    """Return how many of its instructions a core does in a cycle, on registers alone."""
    others = 30 - loop.chains
    body = [
        template.format(acc=acc, other=loop.chains + acc % others)
        for acc in range(loop.chains)
        for template in loop.peak
    ]
    return loop.chains / cycles_of(body, core)


def cycles_of(body: list[str], core: str) -> float:
    """Return how many cycles a core takes for a loop each time, its jump left out."""
    plain = [words for words in body if not re.match(r"b|cb|tb", words)]
    command = [_tool("llvm-mca"), "-mtriple=aarch64", f"-mcpu={core}", f"-iterations={ITERATIONS}"]
    text = "\n".join(plain)
    shown = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Total Cycles:\s+(\d+)", shown)
    assert found, shown
    return int(found[1]) / ITERATIONS


def _count(body: list[str], instruction: str) -> int:
    return sum(words.startswith(instruction) for words in body)


def _disassembled(loop: Loop) -> list[Instruction]:
    made = compile_side_by_side(
        [loop.family], LEVELS[loop.level], 1, lambda family, make: make(), print, "aarch64"
    )
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(unpack(made[loop.family])[loop.kernel])
        file.flush()
        command = [_tool("llvm-objdump"), "-d", "--no-show-raw-insn", file.name]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^\s*([0-9a-f]+):\s+(.*)$", shown, re.MULTILINE)
    return [(int(at, 16), re.sub(r"\s*<.*", "", words).replace("\t", " ")) for at, words in lines]


def _tool(name: str) -> str:
    for version in VERSIONS:
        found = shutil.which(name + version)
        if found and (version or _is_recent(found)):
            return found
    sys.exit(f"{name} of LLVM 17 or later is missing: apt install llvm-19")


def _is_recent(tool: str) -> bool:
    shown = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"LLVM version (\d+)", shown)
    return bool(found) and int(found[1]) >= 17


if __name__ == "__main__":
    main()
