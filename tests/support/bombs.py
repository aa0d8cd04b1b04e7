"""Small files that describe a lot: parts of a flatbuffer may be shared, or lie over each other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from flatbuffers import Builder
from numpy.typing import ArrayLike, DTypeLike

from delegraph.delegation.configuration import DEFAULT_DELEGATES_VARIABLE

MEGABYTES = 256
SECONDS = 2
ANSWERS = ("runs", "MalformedModelError: ", "OperatorError: ", "UnresolvedOpError: ", "NodeError: ")

TRY = """
import re, sys, time
from pathlib import Path
from delegraph import Interpreter
from delegraph.errors import DelegraphError
content = open(sys.argv[1], "rb").read()
start = time.process_time()
try:
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    said = f"runs, {len(interpreter.placement.partitions)} delegated"
except DelegraphError as error:
    said = f"{type(error).__name__}: {error}"
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(peak >> 10, time.process_time() - start, said)
"""


class Bomb:
    """Flatbuffer of the model schema whose tables and vectors may share any bytes."""

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
        outputs: Sequence[int] = (),
        parts: dict[int, int] | None = None,
    ) -> bytes:
        graph = {0: self.tables(tensors), 3: self.tables(operators)}
        if outputs:
            graph |= {1: self.array([0], np.int32), 2: self.array(outputs, np.int32)}
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
    """Model whose tensors have lists of zero points that overlap in the file."""
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
    """Model whose nodes share weights and each need one multiplier per channel."""
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


def flags() -> bytes:
    """Model with lists of one-byte numbers that each become an 8-byte reference."""
    bomb = Bomb()
    parts = {7: bomb.array(np.zeros(1_000_000), np.uint8)}
    return bomb.model([], [bomb.table(offsets=parts) for _ in range(4)], code=32)


def wide_names() -> bytes:
    """Model with names of invalid UTF-8 that become wide strings in memory."""
    bomb, count = Bomb(), 100_000
    name = bomb.builder.CreateString("\N{BOMB}".encode() + b"\xff" * count)
    return bomb.model([bomb.table(offsets={3: name})] * 40, buffer=np.zeros(900_000, np.uint8))


def description() -> bytes:
    bomb = Bomb()
    text = bomb.builder.CreateString("\N{BOMB}".encode() + b"\xff" * 1_000_000)
    return bomb.model([], parts={3: text})


def block_maps() -> bytes:
    bomb = Bomb()
    numbers = bomb.array(np.arange(300_000) + 1000, np.int32)
    lists = {0: numbers, 1: numbers, 2: bomb.tables([])}
    tensor = bomb.table(offsets={6: bomb.table(offsets=lists)}, u4_2=1)
    return bomb.model([tensor] * 2)


def subgraphs() -> bytes:
    bomb = Bomb()
    graph = bomb.table(offsets={0: bomb.tables([]), 3: bomb.tables([])})
    return bomb.model([], parts={2: bomb.tables([graph] * 300_000)})


def operator_codes() -> bytes:
    bomb = Bomb()
    code = bomb.table(offsets={1: bomb.text(16)}, u1_0=32, u4_3=32)
    return bomb.model([], parts={1: bomb.tables([code] * 300_000)})


def buffers() -> bytes:
    bomb = Bomb()
    return bomb.model([], parts={4: bomb.tables([bomb.table(offsets={})] * 300_000)})


def empty_signatures() -> bytes:
    bomb = Bomb()
    none = bomb.tables([])
    signature = bomb.table(offsets={0: none, 1: none, 2: bomb.text(5)})
    defs = bomb.tables([signature] * 300_000)
    return bomb.model([bomb.table(offsets={})], parts={7: defs})


def pack_of_many() -> bytes:
    """Model whose nodes share a list of 64,000 inputs."""
    bomb, count = Bomb(), 64_000
    tensors = [bomb.table(offsets={0: bomb.array(shape, np.int32)}) for shape in ([1], [count])]
    inputs = bomb.array(np.zeros(count), np.int32)
    parts = {1: inputs, 2: bomb.array([1], np.int32), 4: bomb.table(offsets={})}
    operators = [bomb.table(offsets=parts, u1_3=10)] * 20
    rest = np.zeros(1_000_000, np.uint8)
    return bomb.model(tensors, operators, code=2, buffer=rest, outputs=[1])


def dimensions_to_squeeze() -> bytes:
    bomb = Bomb()
    tensors = [bomb.table(offsets={0: bomb.array([4], np.int32)})] * 2
    options = bomb.table(offsets={0: bomb.array(np.zeros(300_000), np.int32)})
    parts = {1: bomb.array([0], np.int32), 2: bomb.array([1], np.int32), 4: options}
    return bomb.model(tensors, [bomb.table(offsets=parts, u1_3=30)] * 4, code=43, outputs=[1])


def _products(
    types: tuple[int, int], filters: tuple[int, int], data: ArrayLike, count: int
) -> bytes:
    """Return FULLY_CONNECTED nodes that share weights: *types* of input and weights, by number."""
    bomb, (outputs, depth) = Bomb(), filters
    scales = {2: bomb.array([0.1], np.float32), 3: bomb.array([0], np.int64)}
    parts = [{4: bomb.table(offsets=scales)} if kind == 9 else {} for kind in types]
    shapes = [bomb.array(shape, np.int32) for shape in ([1, depth], filters, [1, outputs])]
    x = bomb.table(offsets={0: shapes[0], **parts[0]}, u1_1=types[0])
    y = bomb.table(offsets={0: shapes[2], **parts[0]}, u1_1=types[0])
    # A weight tensor for each node, of one buffer.
    weights = [bomb.table(offsets={0: shapes[1], **parts[1]}, u1_1=types[1], u4_2=1)] * count
    options = bomb.table(offsets={})
    operators = []
    for i in range(count):
        inputs, made = bomb.array([0, 1 + i], np.int32), bomb.array([1 + count + i], np.int32)
        operators.append(bomb.table(offsets={1: inputs, 2: made, 4: options}, u1_3=8))
    last = range(1 + count, 1 + 2 * count)
    return bomb.model([x, *weights, *[y] * count], operators, code=9, buffer=data, outputs=last)


def shared_weights_int8() -> bytes:
    data = np.random.default_rng(1).integers(0, 256, 512 * 512)
    return _products((9, 9), (512, 512), data, 400)


def shared_weights_hybrid() -> bytes:
    data = np.random.default_rng(1).integers(0, 256, 512 * 512)
    return _products((0, 9), (512, 512), data, 400)


def shared_weights_float() -> bytes:
    data = np.random.default_rng(1).random(512 * 512, np.float32).view(np.uint8)
    return _products((0, 0), (512, 512), data, 300)


def narrow_weights() -> bytes:
    """Model whose nodes each need a record for each of half a million outputs."""
    return _products((9, 9), (500_000, 1), np.zeros(500_000), 100)


def shared_summands() -> bytes:
    bomb, count = Bomb(), 150
    shape = bomb.array([300_000], np.int32)
    x = bomb.table(offsets={0: shape})
    constants = [bomb.table(offsets={0: shape}, u4_2=1)] * count
    options = bomb.table(offsets={})
    operators = []
    for i in range(count):
        parts = {1: bomb.array([0, 1 + i], np.int32), 2: bomb.array([1 + count + i], np.int32)}
        operators.append(bomb.table(offsets={**parts, 4: options}, u1_3=11))
    data, last = np.zeros(1_200_000, np.uint8), [1 + count]
    return bomb.model([x, *constants, *[x] * count], operators, buffer=data, outputs=last)


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
    flags,
    wide_names,
    description,
    block_maps,
    subgraphs,
    operator_codes,
    buffers,
    empty_signatures,
    pack_of_many,
    dimensions_to_squeeze,
    shared_weights_int8,
    shared_weights_hybrid,
    shared_weights_float,
    narrow_weights,
    shared_summands,
)


def check_bomb(content: bytes, path: Path, default_delegates: str | None) -> None:
    """Read and prepare a bomb in another process, whose memory and time are limited.

    Args:
        content: the bomb.
        path: where to put it.
        default_delegates: names of delegates that apply by default; None for those installed.
    """
    path.write_bytes(content)
    environment = {k: v for k, v in os.environ.items() if k != DEFAULT_DELEGATES_VARIABLE}
    if default_delegates is not None:
        environment[DEFAULT_DELEGATES_VARIABLE] = default_delegates
    answer = subprocess.run(
        [sys.executable, "-c", TRY, str(path)],
        capture_output=True, text=True, timeout=120, check=False, env=environment,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    peak, seconds, said = answer.stdout.split(maxsplit=2)
    assert said.startswith(ANSWERS)
    assert int(peak) < MEGABYTES, f"{peak} MB after {said}"
    assert float(seconds) < SECONDS, f"{seconds} s for {said}"
