from __future__ import annotations

import numpy as np
import pytest

from delegraph.errors import OperatorError
from delegraph.operators import MemoryLimit
from delegraph_numba_cpu.instructions.memory import Memory
from delegraph_numba_cpu.program.shared_constants import LEAST, SharedConstants

CONSTANT = np.arange(LEAST, dtype=np.uint8)


def kept(array: object) -> Memory:
    assert isinstance(array, np.ndarray)
    return Memory(array.nbytes)


def test_equal_constants_are_kept_once() -> None:
    shared = SharedConstants(MemoryLimit(LEAST, is_default=False))
    memory = shared.memory(CONSTANT, kept)
    assert shared.memory(CONSTANT.copy(), kept) is memory
    small = CONSTANT[1:]
    assert shared.memory(small, kept) is not shared.memory(small, kept)


@pytest.mark.parametrize(
    "other", [CONSTANT + 1, CONSTANT.view(np.int8), CONSTANT.reshape(2, -1)], ids=str
)
def test_others_count_toward_the_limit(other: object) -> None:
    shared = SharedConstants(MemoryLimit(2 * LEAST - 1, is_default=False))
    shared.memory(CONSTANT, kept)
    with pytest.raises(OperatorError, match=f"constants needs {2 * LEAST} bytes, more than the li"):
        shared.memory(other, kept)  # type: ignore[arg-type]
