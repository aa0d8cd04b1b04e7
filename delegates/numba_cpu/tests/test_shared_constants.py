from __future__ import annotations

import numpy as np
import pytest

from delegraph import Tensor
from delegraph.errors import OperatorError
from delegraph.operators import AllocationType, MemoryLimit
from delegraph.schema.enums import TensorType
from delegraph_numba_cpu.instructions.memory import Memory
from delegraph_numba_cpu.program.shared_constants import LEAST, SharedConstants

CONSTANT = np.arange(LEAST, dtype=np.uint8)


def kept(array: object) -> Memory:
    assert isinstance(array, np.ndarray)
    return Memory(array.nbytes, array=array)


def test_equal_constants_are_kept_once() -> None:
    shared = SharedConstants(MemoryLimit(LEAST, is_default=False))
    memory = shared.memory(CONSTANT, kept)
    assert shared.memory(CONSTANT.copy(), kept) is memory
    small = CONSTANT[1:]
    assert shared.memory(small, kept) is not shared.memory(small, kept)


def test_constants_that_differ_in_one_value_are_both_kept() -> None:
    shared = SharedConstants(MemoryLimit(2 * LEAST, is_default=False))
    other = CONSTANT.copy()
    other[1] += 1
    assert shared.memory(other, kept) is not shared.memory(CONSTANT, kept)


@pytest.mark.parametrize(
    "other", [CONSTANT + 1, CONSTANT.view(np.int8), CONSTANT.reshape(2, -1)], ids=str
)
def test_others_count_toward_the_limit(other: object) -> None:
    shared = SharedConstants(MemoryLimit(2 * LEAST - 1, is_default=False))
    shared.memory(CONSTANT, kept)
    with pytest.raises(OperatorError, match=f"constants needs {2 * LEAST} bytes, more than the li"):
        shared.memory(other, kept)  # type: ignore[arg-type]


def test_tensors_of_one_buffer_have_one_memory() -> None:
    shared = SharedConstants(MemoryLimit(LEAST, is_default=False))
    tensors = [
        Tensor(
            index,
            TensorType.UINT8,
            CONSTANT.shape,
            data=CONSTANT,
            allocation_type=AllocationType.MMAP_RO,
        )
        for index in range(2)
    ]
    found = [shared.memory_of(tensor, kept) for tensor in tensors]
    assert found[0] is found[1]
