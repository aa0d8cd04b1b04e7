"""BATCH_MATMUL of float32 matrices with few rows, which multiply matrices that are not packed."""

from __future__ import annotations

import numpy as np
import pytest

from delegated import delegated, is_taken, kernels_of, levels, run
from delegraph.schema.layer_options import BatchMatMulOptions
from delegraph.testing import one_op_model, tensor
from delegraph_numba_cpu.library.cpu import level_named

SIZES = [(1, 1), (7, 3), (16, 16), (33, 21), (20, 70), (64, 129)]


def product(rows: int, depth: int, columns: int, *, adj_y: bool) -> bytes:
    """Return a model that multiplies 3 matrices by 3 others."""
    right = (3, columns, depth) if adj_y else (3, depth, columns)
    operands = [tensor((3, rows, depth)), tensor(right)]
    options = BatchMatMulOptions(adj_y=adj_y)
    return one_op_model("BATCH_MATMUL", operands, [tensor((3, rows, columns))], options)


def operands(rows: int, depth: int, columns: int) -> list[np.ndarray]:
    """Return normal values for left matrices, and for right matrices with rows as columns."""
    generator = np.random.default_rng(depth)
    shapes = (3, rows, depth), (3, columns, depth)
    return [generator.standard_normal(shape).astype(np.float32) for shape in shapes]


@levels
@pytest.mark.parametrize("adj_y", [False, True])
@pytest.mark.parametrize(("depth", "columns"), SIZES)
def test_each_row_is_that_of_a_single_one(
    level: str, adj_y: bool, depth: int, columns: int
) -> None:
    for rows in range(2, 9):
        x, w = operands(rows, depth, columns)
        right = w if adj_y else np.ascontiguousarray(w.swapaxes(1, 2))
        several = delegated(product(rows, depth, columns, adj_y=adj_y), level)
        single = delegated(product(1, depth, columns, adj_y=adj_y), level)
        found = run(several, x, right)
        assert is_taken(several)
        expected = x.astype(np.float64) @ w.swapaxes(1, 2)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * depth)
        if not adj_y or rows <= level_named(level).vector_bytes // 8:
            for row in range(rows):
                own = run(single, x[:, row : row + 1], right)
                np.testing.assert_array_equal(found[:, row : row + 1], own)


def test_matrices_are_packed_for_more_rows_only() -> None:
    for rows in (2, 64):
        for adj_y, kernel in ((False, "sums"), (True, "dots")):
            kernels = kernels_of(product(rows, 20, 8, adj_y=adj_y))
            assert (kernel in kernels) == (rows == 2)
