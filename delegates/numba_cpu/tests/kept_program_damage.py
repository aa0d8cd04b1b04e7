"""Damages kept programs, with digests made right again, and runs those that are accepted.

python delegates/numba_cpu/tests/kept_program_damage.py [--copies N] [--first N] [--seconds S]

Each copy is read and run in a child process, in memory between protected pages. Exit
code 1 where one ended the process or took too long; it is named by its number, and
``--first NUMBER --copies 1`` repeats it.
"""

from __future__ import annotations

import argparse
import mmap
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("DELEGRAPH_DEFAULT_DELEGATES", "")

import numpy as np
from numpy.typing import NDArray

from delegated import Watched
from delegraph import Interpreter, Tensor
from delegraph.errors import DelegraphError
from delegraph.testing import cases
from delegraph_numba_cpu.delegate import NumbaCpuKernel
from delegraph_numba_cpu.instructions.memory import padded
from delegraph_numba_cpu.kept import program_file as file
from delegraph_numba_cpu.kept.reading import Host, read
from delegraph_numba_cpu.kept.writing import pieces_of
from delegraph_numba_cpu.lowering import OPERATORS
from delegraph_numba_cpu.program.guarded_memory import GuardedMemory
from delegraph_numba_cpu.program.working_memory import WorkingMemory

KEY = bytes(range(32))

TABLES = (
    *("memories", "memories", "rows", "kinds", "values", "values", "values", "nodes"),
    *("shared", "constants"),
)
"""Parts that are damaged, most often the words."""

NUMBERS = (
    0, 1, -1, 2, 3, 7, 64, 255, 1 << 16, 1 << 31, (1 << 31) - 1, 1 << 39, 1 << 62, -(1 << 63),
)  # fmt: skip


class GuardedWorkingMemory(WorkingMemory):
    """Working memory before and after which a touch ends the process."""

    def reserve(self, size: int) -> None:
        if size > self.data.nbytes:
            self.require(size)
            self._piece = GuardedMemory(padded(size, file.LINE))
            self.data = self._piece.array


@dataclass(frozen=True)
class Start:
    """A sound program to make damaged copies of.

    Attributes:
        name: the operator of its model.
        content: the file.
        shared: constants that are not in the file, by name.
        tensors: of the subgraph.
        kernel: of the partition.
    """

    name: str
    content: bytes
    shared: dict[bytes, memoryview]
    tensors: Sequence[Tensor]
    kernel: NumbaCpuKernel

    def host(self, memory: WorkingMemory) -> Host:
        """Return the tensors, library and working memory that a program of the partition uses."""
        params = self.kernel.params
        border = (*params.input_tensors, *params.output_tensors)
        nodes, outputs = params.nodes_to_replace, params.output_tensors
        library, shared = self.kernel.kernel_library, self.shared.get
        return Host(self.tensors, nodes, border, outputs, 2, library, memory, shared)

    def run(self, content: bytes) -> str:
        """Read a copy and run it; return how that ended."""
        piece = GuardedMemory(padded(len(content), file.LINE), file.LINE)
        piece.array[: len(content)] = np.frombuffer(content, np.uint8)
        try:
            program = read(piece.array[: len(content)].data, KEY, self.host(GuardedWorkingMemory()))
        except file.UnfitFile:
            return "rejected"
        piece.freeze()
        program.bind()
        self.kernel.kernel_library.run(program.table, 0, 0)
        return "run"


def starts(ops: Sequence[str] | None = None, count: int = 3) -> list[Start]:
    """Return sound programs of each operator, of several types."""
    found = []
    for op in ops or sorted(OPERATORS):
        models = set()
        for case in cases(op, seed=3, count=1):
            start = _start(op, case.model())
            if start is not None and (kinds := _kinds(start.content)) not in models:
                models.add(kinds)
                found.append(start)
            if len(models) >= count:
                break
    return found


def _kinds(content: bytes) -> bytes:
    """Return the names of the instructions in a file."""
    return bytes(parts(np.frombuffer(content, np.uint8))["names"])


def _start(op: str, model: bytes) -> Start | None:
    delegate = Watched(kept_programs=False)
    try:
        interpreter = Interpreter(model_content=model, experimental_delegates=[delegate])
        interpreter.allocate_tensors()
    except DelegraphError:
        return None
    if not delegate.kernels or delegate.kernels[0].program is None:
        return None
    kernel = delegate.kernels[0]
    tensors = list(interpreter.subgraph().tensors)
    for tensor in tensors:
        if tensor.data is not None and not tensor.is_constant:
            piece = GuardedMemory(tensor.data.nbytes)
            array = piece.array.view(tensor.dtype).reshape(tensor.data.shape)
            array[...] = 1
            _kept_alive.append(piece)
            tensor.data = array
    _kept_alive.append(interpreter)
    assert kernel.program is not None
    constants: dict[bytes, bytes] = {}
    content = b"".join(pieces_of(kernel.program, KEY, constants))
    return Start(op, content, {k: _guarded(c) for k, c in constants.items()}, tensors, kernel)


def _guarded(constant: bytes) -> memoryview:
    """Return a constant between protected pages, itself protected against writes."""
    piece = GuardedMemory(len(constant), file.LINE)
    piece.array[:] = np.frombuffer(constant, np.uint8)
    piece.freeze()
    _kept_alive.append(piece)
    return piece.array.data


_kept_alive: list[object] = []


def parts(content: NDArray[np.uint8]) -> dict[str, Any]:
    """Return the tables of a file as views."""
    place, found = file.HEADER.itemsize, {}
    header = content[:place].view(file.HEADER)[0]
    for name, dtype, count in file.parts_of(header):
        end = place + dtype.itemsize * count
        found[name] = content[place:end].view(dtype)
        place = padded(end, 8)
    found["constants"] = content[padded(place, file.PAGE) :]
    return found


def repaired(content: NDArray[np.uint8]) -> bytes:
    """Return a file with right digests."""
    header = content[: file.HEADER.itemsize].view(file.HEADER)
    constants = parts(content)["constants"]
    header["sums"] = np.frombuffer(file.sums_of(constants), "V32")
    structure = content[: len(content) - len(constants)]
    header["digest"] = np.frombuffer(file.digest_of(structure), "V32")
    return content.tobytes()


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a copy in which one to three numbers of tables are others, with right digests."""
    data = np.frombuffer(content, np.uint8).copy()
    tables = {name: part for name, part in parts(data).items() if len(part)}
    for _ in range(rng.integers(1, 4)):
        name = TABLES[rng.integers(len(TABLES))]
        if name not in tables:
            continue
        table = tables[name].view("<u8") if name == "shared" else tables[name]
        if table.dtype.names:
            table = table[table.dtype.names[rng.integers(len(table.dtype.names))]]
        at = rng.integers(len(table))
        with np.errstate(over="ignore"):
            table[at] = _other(int(table[at]), table.dtype, rng)
    return repaired(data)


def _other(number: int, dtype: Any, rng: np.random.Generator) -> Any:
    kind = rng.integers(4)
    if kind == 0:
        other = NUMBERS[rng.integers(len(NUMBERS))]
    elif kind == 1:
        other = number + int(rng.integers(-3, 4))
    elif kind == 2:
        other = number ^ (1 << int(rng.integers(8 * dtype.itemsize)))
    else:
        other = number * int(rng.integers(2, 9)) if rng.integers(2) else number // 2
    return np.array(other & (1 << 64) - 1, np.uint64).astype(dtype)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--copies", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--op", action="append")
    given = parser.parse_args()
    found = starts(given.op)
    print(len(found), "programs", flush=True)
    endings, bad = campaign(found, given.first, given.first + given.copies, given.seconds)
    print(dict(endings), flush=True)
    for number, start, text in bad:
        print(f"copy {number} of {start}: {text}")
    return 1 if bad else 0


def campaign(
    found: Sequence[Start], first: int, end: int, seconds: float
) -> tuple[Counter[str], list[tuple[int, str, str]]]:
    """Try copies; return how many ended how, and those that ended the process."""
    shared = np.frombuffer(mmap.mmap(-1, 4096), np.int64)  # next copy, rejected, run
    shared[:3] = first, 0, 0
    bad, start = [], time.monotonic()
    while shared[0] < end and time.monotonic() - start < seconds:
        child = os.fork()
        if child == 0:
            _try_all(found, shared, end, seconds - (time.monotonic() - start))
        _, status = os.waitpid(child, 0)
        if status:
            number = int(shared[0])
            shared[0] += 1
            text = signal.Signals(status & 127).name if status & 127 else f"exit {status >> 8}"
            bad.append((number, found[number % len(found)].name, text))
    return Counter(rejected=int(shared[1]), run=int(shared[2]), ended=len(bad)), bad


def _try_all(found: Sequence[Start], shared: NDArray[np.int64], end: int, seconds: float) -> None:
    """Try copies in a child process, which ends here."""
    start = time.monotonic()
    try:
        while shared[0] < end and time.monotonic() - start < seconds:
            number = int(shared[0])
            signal.alarm(20)
            rng = np.random.default_rng(number)
            chosen = found[number % len(found)]
            ending = chosen.run(damaged(chosen.content, rng))
            shared[2 if ending == "run" else 1] += 1
            shared[0] += 1
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - told by the exit code
        print(
            f"copy {int(shared[0])}: {type(error).__name__}: {error}", file=sys.stderr, flush=True
        )
        os._exit(3)


if __name__ == "__main__":
    sys.exit(main())
