"""Memory files hold what they were given, and no process can take it from under another."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from delegraph import Tensor, TensorType
from delegraph.runtime.isolation.memory_file import MemoryFile, array_at, offsets

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


def test_content_is_read_back_and_the_descriptor_closed() -> None:
    memory = MemoryFile.with_content(b"abc")
    file = memory.file
    assert bytes(memory.mapped()) == b"abc"
    memory.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)


@pytest.mark.skipif(sys.platform != "linux", reason="seals are Linux's")
def test_no_process_can_shrink_it() -> None:
    memory = MemoryFile.of_size(100)
    with pytest.raises(PermissionError):
        os.ftruncate(memory.file, 10)


@pytest.mark.parametrize(
    ("kind", "shape", "expected"),
    [
        (TensorType.FLOAT32, (2, 3), ((2, 3), np.float32)),
        (TensorType.INT8, (0, 3), ((0, 3), np.int8)),
        (TensorType.BOOL, (), ((), np.bool_)),
        (TensorType.INT4, (3,), ((2,), np.uint8)),
    ],
)
def test_arrays_are_as_tensors_have_them(
    kind: TensorType, shape: tuple[int, ...], expected: tuple[tuple[int, ...], type]
) -> None:
    places, size = offsets([5, 64])
    memory = MemoryFile.of_size(size).mapped()
    found = array_at(memory, places[1], Tensor(0, kind, shape))
    assert (found.shape, found.dtype) == (expected[0], np.dtype(expected[1]))
    assert found.flags.writeable
