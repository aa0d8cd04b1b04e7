"""Products of stacks of int8 matrices, against Delegraph's own kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import delegated, is_taken, levels, run
from delegraph import Interpreter
from delegraph.schema.options import BatchMatMulOptions
from delegraph.testing import TensorDef, constant, one_op_model, tensor

LARGE_SCALES = [2.0**k for k in (14, 20, 24, 30)]
"""Output scales so large that every product becomes the zero point."""

STACKS = [
    ((), ()), ((3,), (3,)), ((1,), (5,)), ((2, 3), ()), ((4,), (1,)), ((2, 2, 2), (2, 2, 2)),
    ((2, 1), (1, 3)), ((2, 3), (3,)), ((2, 1, 2), (2, 3, 1)),
]  # fmt: skip


def operand(shape: tuple[int, ...], zero_point: int, seed: int) -> NDArray[Any]:
    """Return values of the whole range, one in four of its ends."""
    generator = np.random.default_rng([seed, *shape])
    values = generator.integers(-128, 128, shape)
    ends = generator.choice([-128, 127, zero_point], shape)
    chosen: NDArray[Any] = np.where(generator.random(shape) < 0.25, ends, values).astype(np.int8)
    return chosen


class Matmul:
    """A model of one product.

    Args:
        sizes: rows, depth, columns.
        stacks: leading dimensions of both operands.
        zero_points: of both operands and the output.
        is_constant: whether the right operand is.
        scale: of the output; chosen to suit the depth if not given.
        options: ``adj_x`` and ``adj_y``.
    """

    def __init__(
        self,
        sizes: tuple[int, int, int],
        stacks: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
        *,
        zero_points: tuple[int, int, int] = (7, -11, 3),
        is_constant: bool = False,
        scale: float | None = None,
        **options: bool,
    ) -> None:
        rows, depth, columns = sizes
        left = (depth, rows) if options.get("adj_x") else (rows, depth)
        right = (columns, depth) if options.get("adj_y") else (depth, columns)
        self.x = operand((*stacks[0], *left), zero_points[0], 1)
        w = operand((*stacks[1], *right), zero_points[1], 2)
        self.inputs = [self.x] if is_constant else [self.x, w]
        given: TensorDef = (
            constant(w, scale=0.02, zero_point=zero_points[1])
            if is_constant
            else tensor(w.shape, "INT8", scale=0.02, zero_point=zero_points[1])
        )
        scale = 0.04 * 0.02 * 90 * 90 * depth**0.5 / 60 if scale is None else scale
        self.model = one_op_model(
            "BATCH_MATMUL",
            [tensor(self.x.shape, "INT8", scale=0.04, zero_point=zero_points[0]), given],
            [tensor((), "INT8", scale=scale, zero_point=zero_points[2])],
            BatchMatMulOptions(**options),
        )

    def assert_agrees(self, level: str = "auto", threads: int = 1, *, exact: bool = True) -> None:
        """Check the results, bit for bit or within a unit, of two runs."""
        ours = delegated(self.model, level, exact=exact, num_threads=threads)
        theirs = Interpreter(model_content=self.model)
        assert is_taken(ours)
        for sign in (0, -1):
            inputs = [array ^ np.int8(sign) for array in self.inputs]
            found, expected = run(ours, *inputs), run(theirs, *inputs)
            assert found.shape == expected.shape
            difference = np.abs(found.astype(int) - expected)
            assert difference.max(initial=0) <= (0 if exact else 1)


@levels
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("depth", [1, 4, 7, 64, 130])
@pytest.mark.parametrize("columns", [1, 15, 16, 33, 64, 100, 200])
@pytest.mark.parametrize("rows", [1, 6, 19])
def test_any_sizes(level: str, is_constant: bool, rows: int, depth: int, columns: int) -> None:
    stacks = ((2,), () if is_constant else (2,))
    Matmul((rows, depth, columns), stacks, is_constant=is_constant).assert_agrees(level)


@pytest.mark.parametrize("stacks", STACKS)
@pytest.mark.parametrize("adj_x", [False, True])
@pytest.mark.parametrize("adj_y", [False, True])
@pytest.mark.parametrize("is_constant", [False, True])
def test_stacks_and_adjoints(stacks: Any, adj_x: bool, adj_y: bool, is_constant: bool) -> None:
    matmul = Matmul((9, 18, 70), stacks, is_constant=is_constant, adj_x=adj_x, adj_y=adj_y)
    matmul.assert_agrees()


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("zero_points", [(-128, -128, -128), (127, 127, 127), (-128, 127, 0)])
def test_zero_points_at_the_ends_of_the_range(zero_points: Any, is_constant: bool) -> None:
    Matmul((5, 50, 81), zero_points=zero_points, is_constant=is_constant).assert_agrees()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("exact", [True, False])
def test_threads_share_the_work(threads: int, exact: bool) -> None:
    Matmul((200, 64, 200), ((12,), (12,)), adj_y=True).assert_agrees(threads=threads, exact=exact)
    Matmul((700, 256, 400), adj_y=True).assert_agrees(threads=threads, exact=exact)


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("scale", [1e-3, 30.0])
def test_large_and_tiny_multipliers(is_constant: bool, scale: float) -> None:
    Matmul((9, 4000, 70), scale=scale, is_constant=is_constant).assert_agrees()


def test_operands_may_be_resized() -> None:
    matmul = Matmul((5, 20, 30), ((2,), (2,)))
    ours, theirs = delegated(matmul.model), Interpreter(model_content=matmul.model)
    for sizes in ((5, 20, 30), (7, 33, 65), (1, 3, 2)):
        inputs = Matmul(sizes, ((3,), (3,))).inputs
        np.testing.assert_array_equal(run(ours, *inputs), run(theirs, *inputs))


@pytest.mark.parametrize("scale", LARGE_SCALES)
@levels
def test_products_of_either_sign_that_become_nothing_are_the_zero_point(
    level: str, scale: float
) -> None:
    Matmul((4, 8, 17), zero_points=(127, -128, 3), scale=scale).assert_agrees(level)
