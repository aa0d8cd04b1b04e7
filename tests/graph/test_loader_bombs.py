"""Small files that describe a lot: parts of a flatbuffer may be shared, or lie over each other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from flatbuffers import Builder
from numpy.typing import ArrayLike, DTypeLike

from delegraph import Interpreter
from delegraph.errors import MalformedModelError
from delegraph.graph.loader import parse_model

MEGABYTES = 256
SECONDS = 2

TRY = """
import re, sys, time
from pathlib import Path
from delegraph import Interpreter
from delegraph.errors import DelegraphError
content = open(sys.argv[1], "rb").read()
start = time.process_time()
try:
    Interpreter(model_content=content).allocate_tensors()
    said = "runs"
except DelegraphError as error:
    said = f"{type(error).__name__}: {error}"
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(peak >> 10, time.process_time() - start, said)
"""


class Bomb:
    """A flatbuffer of the model schema in which anything may be shared."""

    def __init__(self) -> None:
        self.builder = Builder(1 << 20)

    def array(self, values: ArrayLike, dtype: DTypeLike) -> int:
        return int(self.builder.CreateNumpyVector(np.asarray(values, dtype)))

    def text(self, length: int) -> int:
        return int(self.builder.CreateString("n" * length))

    def table(self, *, offsets: dict[int, int], **numbers: int) -> int:
        """Return a table; ``u4_1=7`` is the number 7 of 4 bytes in field 1."""
        builder = self.builder
        builder.StartObject(16)
        for field, offset in offsets.items():
            builder.PrependUOffsetTRelativeSlot(field, offset, 0)
        for name, number in numbers.items():
            width, field_id = name[1:].split("_")
            put = builder.PrependInt32Slot if width == "4" else builder.PrependInt8Slot
            put(int(field_id), number, 0)
        return int(builder.EndObject())

    def tables(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def model(
        self,
        tensors: Sequence[int],
        operators: Sequence[int] = (),
        *,
        code: int = 0,
        buffer: ArrayLike = (0,) * 64,
        parts: dict[int, int] | None = None,
    ) -> bytes:
        graph = {0: self.tables(tensors), 3: self.tables(operators)}
        subgraphs = self.tables([self.table(offsets=graph)])
        custom = {1: self.text(4)} if code == 32 else {}
        codes = self.tables([self.table(offsets=custom, u1_0=code, u4_3=code)])
        data = self.table(offsets={0: self.array(buffer, np.uint8)})
        buffers = self.tables([self.table(offsets={}), data])
        root = {1: codes, 2: subgraphs, 4: buffers, **(parts or {})}
        self.builder.Finish(self.table(offsets=root, u4_0=3), b"TFL3")
        return bytes(self.builder.Output())


def shared_zero_points() -> bytes:
    bomb, count = Bomb(), 100_000
    lists = {2: bomb.array(np.ones(count), np.float32), 3: bomb.array(np.zeros(count), np.int64)}
    shape = bomb.array([count], np.int32)
    tensors = [
        bomb.table(offsets={0: shape, 4: bomb.table(offsets=lists)}, u1_1=9) for _ in range(6000)
    ]
    return bomb.model(tensors)


def overlapping_zero_points() -> bytes:
    """Each tensor has a list of its own that begins within that of the others."""
    bomb, count = Bomb(), 100_000
    scale = bomb.array(np.ones(count), np.float32)
    values = bomb.array(np.full(2 * count + 4000, count), np.int32)  # any word is a length
    shape = bomb.array([count], np.int32)
    tensors = []
    for i in range(2000):
        lists = {2: scale, 3: values - 4 * (i + 1)}
        tensors.append(bomb.table(offsets={0: shape, 4: bomb.table(offsets=lists)}, u1_1=9))
    return bomb.model(tensors)


def shared_scales_of_nodes() -> bytes:
    """Every node asks for a multiplier of every channel of the same weights."""
    bomb, count = Bomb(), 50_000
    many = {2: bomb.array(np.ones(count), np.float32), 3: bomb.array(np.zeros(count), np.int64)}
    one = bomb.table(offsets={2: bomb.array([1], np.float32), 3: bomb.array([0], np.int64)})
    narrow, wide = bomb.array([1, 1], np.int32), bomb.array([1, count], np.int32)
    filters = bomb.array([count, 1], np.int32)
    tensors = [
        bomb.table(offsets={0: narrow, 4: one}, u1_1=9),
        bomb.table(offsets={0: filters, 4: bomb.table(offsets=many)}, u1_1=9, u4_2=1),
        *(bomb.table(offsets={0: wide, 4: one}, u1_1=9) for _ in range(4000)),
    ]
    inputs = bomb.array([0, 1], np.int32)
    options = bomb.table(offsets={})
    operators = [
        bomb.table(offsets={1: inputs, 2: bomb.array([2 + i], np.int32), 4: options}, u1_3=8)
        for i in range(4000)
    ]
    graph_inputs = np.zeros(count, np.uint8)
    return bomb.model(tensors, operators, code=9, buffer=graph_inputs)


def shapes() -> bytes:
    bomb = Bomb()
    shape = bomb.array(np.ones(100_000), np.int32)
    return bomb.model([bomb.table(offsets={0: shape}) for _ in range(8000)])


def signatures_of_shapes() -> bytes:
    bomb = Bomb()
    shape = bomb.array(np.ones(1000), np.int32)
    return bomb.model([bomb.table(offsets={7: shape}) for _ in range(20_000)])


def names() -> bytes:
    bomb = Bomb()
    name = bomb.text(400_000)
    return bomb.model([bomb.table(offsets={3: name}) for _ in range(8000)])


def sparsity() -> bytes:
    bomb = Bomb()
    segments = bomb.table(offsets={0: bomb.array(np.zeros(200_000), np.int32)})
    row = bomb.table(offsets={3: segments, 5: segments}, u1_0=1, u1_2=1, u1_4=1)
    lists = {0: bomb.array([0, 1], np.int32), 2: bomb.tables([row, row])}
    tensors = [
        bomb.table(offsets={6: bomb.table(offsets=lists)}, u4_2=1) for _ in range(8000)
    ]  # fmt: skip
    return bomb.model(tensors)


def options() -> bytes:
    bomb = Bomb()
    parts = {5: bomb.array(np.zeros(1_000_000), np.uint8)}
    return bomb.model([], [bomb.table(offsets=parts) for _ in range(20_000)], code=32)


def operands() -> bytes:
    bomb = Bomb()
    parts = {1: bomb.array(np.full(50_000, -1), np.int32)}
    return bomb.model([], [bomb.table(offsets=parts) for _ in range(20_000)], code=32)


def signatures() -> bytes:
    bomb = Bomb()
    name = bomb.text(4000)
    maps = bomb.tables([bomb.table(offsets={0: name})] * 5000)
    parts = {0: maps, 1: maps, 2: name}
    defs = bomb.tables([bomb.table(offsets=parts) for _ in range(8000)])
    return bomb.model([bomb.table(offsets={})], parts={7: defs})


def metadata() -> bytes:
    bomb = Bomb()
    name = bomb.text(400_000)
    entries = bomb.tables([bomb.table(offsets={0: name}, u4_1=1) for _ in range(20_000)])
    return bomb.model([], parts={6: entries})


def strings() -> bytes:
    bomb, count = Bomb(), 100_000
    offsets = 8 + 4 * count + np.zeros(count + 1)
    content = np.array([count, *offsets], np.int32).view(np.uint8)
    shape = bomb.array([count], np.int32)
    tensors = [bomb.table(offsets={0: shape}, u1_1=5, u4_2=1) for _ in range(4000)]
    return bomb.model(tensors, buffer=content)


def one_tensor_many_times() -> bytes:
    bomb = Bomb()
    return bomb.model([bomb.table(offsets={0: bomb.array([1], np.int32)})] * 250_000)


BOMBS: tuple[Callable[[], bytes], ...] = (
    shared_zero_points,
    overlapping_zero_points,
    shared_scales_of_nodes,
    shapes,
    signatures_of_shapes,
    names,
    sparsity,
    options,
    operands,
    signatures,
    metadata,
    strings,
    one_tensor_many_times,
)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells no peak of memory")
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_a_small_file_takes_little(bomb: Callable[[], bytes], tmp_path: Path) -> None:
    path = tmp_path / "bomb.tflite"
    path.write_bytes(bomb())
    command = [sys.executable, "-c", TRY, str(path)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr
    peak, seconds, said = answer.stdout.split(maxsplit=2)
    assert said.startswith(("runs", "MalformedModelError: ", "OperatorError: "))
    assert int(peak) < MEGABYTES, f"{peak} MB after {said}"
    assert float(seconds) < SECONDS, f"{seconds} s for {said}"


def test_tensors_that_share_a_list_share_its_copy() -> None:
    tensors = parse_model(shared_zero_points()).subgraphs[0].tensors
    zero_points = {id(t.quantization.zero_points) for t in tensors if t.quantization is not None}
    assert len(zero_points) == 1


def test_without_a_limit_it_is_64_times_the_file() -> None:
    content = options()
    with pytest.raises(
        MalformedModelError, match=f"64 times the file's {len(content)} bytes; Inter"
    ):
        parse_model(content)
    assert parse_model(content, None, 1 << 40).subgraphs[0].operators


def test_a_chosen_memory_limit_holds_while_the_file_is_read() -> None:
    content = overlapping_zero_points()
    with pytest.raises(MalformedModelError, match="limit of 2000000 bytes"):
        Interpreter(model_content=content, memory_limit=2_000_000)
