"""Whatever happens to the files that a delegate keeps, models give the right answers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, SimpleDelegateInterface, SimpleDelegateKernelInterface
from delegraph.schema.options import MulOptions
from delegraph.testing import constant, graph_model, tensor

MODELS = ("two", "three")
X = np.arange(4, dtype=np.float32)


def model(name: str) -> bytes:
    """Return y = 2 x or y = 3 x; their partitions have files of the same length."""
    factor = np.full(4, {"two": 2, "three": 3}[name], np.float32)
    tensors = {"x": tensor((4,)), "f": constant(factor)}
    nodes = [("MUL", "x f", "y", MulOptions())]
    return graph_model(nodes, inputs="x", outputs="y", tensors=tensors)


class Keeping(SimpleDelegateInterface):
    """Computes by the partition's own file, which it keeps as another would keep what it compiles.

    Attributes:
        compiled: how often it has made one.
    """

    compiled = 0

    def name(self) -> str:
        return "keeping"

    def is_node_supported_by_delegate(self, registration: Any, node: Any, context: Any) -> bool:
        return True

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return _Kernel(self)


class _Kernel(SimpleDelegateKernelInterface):
    def __init__(self, delegate: Keeping) -> None:
        self._delegate = delegate

    def init(self, context: Any, params: Any) -> None:
        partition = params.partition_model()
        cache = context.cache("keeping", "1")
        blob = cache.read_or_make(partition.digest, lambda: self._compile(partition.content))
        self._engine = Interpreter(model_content=blob, delegates=[])
        self._engine.allocate_tensors()

    def _compile(self, content: bytes) -> bytes:
        self._delegate.compiled += 1
        return content

    def prepare(self, context: Any, node: Any) -> None:
        pass

    def eval(self, context: Any, node: Any) -> None:
        (x,) = self._engine.get_input_details()
        (y,) = self._engine.get_output_details()
        self._engine.set_tensor(x["index"], context.tensors[0].data)
        self._engine.invoke()
        context.tensors[node.outputs[0]].data[...] = self._engine.get_tensor(y["index"])


def check(folder: Path) -> list[int]:
    """Run both models with what *folder* holds; return how often each was compiled."""
    compiled = []
    for name, factor in zip(MODELS, (2, 3), strict=True):
        delegate = Keeping()
        with Interpreter(
            model_content=model(name), delegates=[delegate], cache_dir=folder
        ) as interpreter:
            interpreter.allocate_tensors()
            interpreter.set_tensor(0, X)
            interpreter.invoke()
            y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
            assert interpreter.placement.delegates == ("keeping",)
        np.testing.assert_array_equal(y, X * factor)
        compiled.append(delegate.compiled)
    return compiled


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache that holds the partitions of both models."""
    assert check(tmp_path / "cache") == [1, 1]
    assert check(tmp_path / "cache") == [0, 0]
    return tmp_path / "cache"


def blobs(folder: Path) -> list[Path]:
    found = sorted(folder.rglob("*.blob"))
    assert len(found) == len(MODELS)
    return found


def _swap(first: Path, second: Path) -> None:
    a, b = first.read_bytes(), second.read_bytes()
    assert len(a) == len(b)
    first.write_bytes(b)
    second.write_bytes(a)


def _cut(*files: Path) -> None:
    for file in files:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _empty(*files: Path) -> None:
    for file in files:
        file.write_bytes(b"")


def _fill(*files: Path) -> None:
    for file in files:
        file.write_bytes(bytes(file.stat().st_size))


def _append(*files: Path) -> None:
    for file in files:
        file.write_bytes(file.read_bytes() + b"\0")


@pytest.mark.parametrize("damage", [_swap, _cut, _empty, _fill, _append])
def test_damaged_and_swapped_files_are_compiled_again(
    folder: Path, damage: Callable[..., None]
) -> None:
    damage(*blobs(folder))
    assert check(folder) == [1, 1]
    assert check(folder) == [0, 0]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Function that mounts a disk of 64 kB, or mounts it again with other options."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(*options: str) -> Path:
        words = ["mount", "-t", "tmpfs", "-o", ",".join(("size=64k", "mode=755", *options))]
        try:
            done = subprocess.run([*words, "tmpfs", str(place)], capture_output=True, check=False)
        except OSError:
            pytest.skip("there is no mount here")
        if done.returncode:
            pytest.skip("nothing can be mounted here")
        return place

    yield mount
    subprocess.run(["umount", str(place)], capture_output=True, check=False)


def _fill_up(file: Path) -> None:
    with file.open("wb", buffering=0) as rest, contextlib.suppress(OSError):
        while True:
            rest.write(bytes(4096))


@pytest.mark.skipif(sys.platform != "linux", reason="mounts as Linux does")
def test_a_full_disk_lets_compile_at_each_start(disk: Callable[..., Path]) -> None:
    place = disk()
    _fill_up(place / "rest")
    assert check(place / "cache") == [1, 1]
    assert check(place / "cache") == [1, 1]
    assert list(place.rglob("*.blob")) == []
    (place / "rest").unlink()
    assert check(place / "cache") == [1, 1]
    assert check(place / "cache") == [0, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="mounts as Linux does")
def test_a_disk_that_became_read_only_is_read(disk: Callable[..., Path]) -> None:
    place = disk()
    assert check(place / "cache") == [1, 1]
    disk("remount", "ro")
    assert check(place / "cache") == [0, 0]
    disk("remount", "rw")
    _cut(*blobs(place / "cache"))
    disk("remount", "ro")
    assert check(place / "cache") == [1, 1]


RUN = """
import sys
from pathlib import Path
from delegation.test_blob_cache_misfortunes import check
check(Path(sys.argv[1]))
"""


def test_processes_that_write_at_once(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    words = [sys.executable, "-c", RUN, str(tmp_path / "cache")]
    environment = {**os.environ, "PYTHONPATH": path}
    running = [subprocess.Popen(words, env=environment) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert check(tmp_path / "cache") == [0, 0]
