"""Float32 weights in the order in which micro-kernels read them."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph_numba_cpu.lowering.convolution.conv_f32_packing import block_widths, pack_matrix


@pytest.mark.parametrize(("inputs", "outputs"), [(3, 40), (5, 7), (4, 64), (0, 9)])
def test_matrix_is_blocks_of_columns_in_aligned_memory(inputs: int, outputs: int) -> None:
    weight = np.arange(inputs * outputs, dtype=np.float32).reshape(outputs, inputs).T
    bias = -np.arange(outputs, dtype=np.float32)
    rows = np.vstack([bias, weight])
    expected, start = [], 0
    for width in block_widths(outputs, 16):
        block = rows[:, start : start + width]
        expected.append(np.pad(block, ((0, 0), (0, width - block.shape[1]))).reshape(-1))
        start += width
    packed = pack_matrix(weight, bias, 16)
    np.testing.assert_array_equal(packed, np.concatenate(expected))
    assert packed.ctypes.data % 64 == 0
