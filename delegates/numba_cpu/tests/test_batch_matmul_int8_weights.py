"""Products of float32 or int16 matrices and a constant int8 matrix, against Delegraph's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import assert_agrees, delegated, levels, run
from delegraph import Interpreter
from delegraph.errors import DelegraphError
from delegraph.schema.options import BatchMatMulOptions
from delegraph.testing import constant, one_op_model, tensor

KINDS = ["FLOAT32", "INT16"]
STACKS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((4,), ()), ((4,), (1,)), ((3, 1), ()), ((2, 3), (1,)), ((), (1, 1)),
]  # fmt: skip


class Matmul:
    """A model of one product, and its input.

    Args:
        kind: of the left matrices.
        sizes: rows, depth, columns.
        stacks: leading dimensions of both operands.
        scales: of the right matrix; one, or one a column.
        y_scale: of int16 results.
        is_constant: whether the right matrix is.
        options: of the operator.
    """

    def __init__(
        self,
        kind: str,
        sizes: tuple[int, int, int],
        stacks: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
        *,
        scales: int = 1,
        y_scale: float | None = None,
        is_constant: bool = True,
        **options: bool,
    ) -> None:
        rows, depth, columns = sizes
        rng = np.random.default_rng([*sizes, len(stacks[0])])
        left = (depth, rows) if options.get("adj_x") else (rows, depth)
        right = (columns, depth) if options.get("adj_y") else (depth, columns)
        w = rng.integers(-127, 128, (*stacks[1], *right)).astype(np.int8)
        scale = rng.uniform(0.005, 0.02, scales).tolist()
        quantization = {"scale": scale, "axis": len(w.shape) - (2 if options.get("adj_y") else 1)}
        shape = (*stacks[0], *left)
        if kind == "INT16":
            self.x: NDArray[Any] = rng.integers(-32768, 32768, shape).astype(np.int16)
            y_scale = (
                3e-4 * scale[0] * 60 * 16000 * depth**0.5 / 9000 if y_scale is None else y_scale
            )
            operands = [tensor(shape, kind, scale=3e-4)]
            output = tensor((), kind, scale=y_scale)
        else:
            self.x = rng.normal(0, 2, shape).astype(np.float32)
            operands, output = [tensor(shape)], tensor(())
        self.inputs = [self.x] if is_constant else [self.x, w]
        operands.append(
            constant(w, **quantization) if is_constant else tensor(w.shape, "INT8", **quantization)
        )
        self.model = one_op_model("BATCH_MATMUL", operands, [output], BatchMatMulOptions(**options))

    def interpreters(self) -> tuple[Interpreter, Interpreter]:
        """Return one with the delegate, and one without."""
        return delegated(self.model, num_threads=1), Interpreter(model_content=self.model)

    def assert_agrees(self, level: str = "auto", threads: int = 1) -> None:
        """Check that the node is taken, and its results: bit for bit if they are integers."""
        assert_agrees(self.model, *self.inputs, level=level, threads=threads, least=0.0)


@levels
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [1, 4, 7, 64, 300])
@pytest.mark.parametrize("columns", [1, 16, 33, 100])
def test_any_sizes(level: str, kind: str, depth: int, columns: int) -> None:
    for rows in (1, 19):
        Matmul(kind, (rows, depth, columns)).assert_agrees(level)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stacks", STACKS)
@pytest.mark.parametrize("adj_y", [False, True])
def test_stacks_and_adjoints(kind: str, stacks: Any, adj_y: bool) -> None:
    Matmul(kind, (9, 18, 70), stacks, adj_y=adj_y).assert_agrees()


@pytest.mark.parametrize("asymmetric", [False, True])
def test_scales_of_columns_and_zero_points_of_rows(asymmetric: bool) -> None:
    options = {"asymmetric_quantize_inputs": asymmetric}
    Matmul("FLOAT32", (5, 40, 33), scales=33, **options).assert_agrees()
    Matmul("FLOAT32", (5, 40, 33), scales=33, adj_y=True, **options).assert_agrees()


def test_scales_of_columns_count_as_nothing_with_int16() -> None:
    Matmul("INT16", (5, 40, 33), scales=33).assert_agrees()


@pytest.mark.parametrize("kind", KINDS)
def test_threads_share_the_work(kind: str) -> None:
    Matmul(kind, (300, 256, 200), ((3,), ())).assert_agrees(threads=3)


@pytest.mark.parametrize("kind", KINDS)
def test_left_matrices_may_be_resized(kind: str) -> None:
    matmul = Matmul(kind, (5, 20, 30), ((2,), ()))
    for shape in ((2, 5, 20), (3, 7, 20), (1, 1, 20)):
        x = Matmul(kind, (shape[1], 20, 30), ((shape[0],), ())).x
        results = [run(interpreter, x) for interpreter in matmul.interpreters()]
        np.testing.assert_allclose(*results, rtol=0, atol=1e-3)


REFUSED: list[tuple[Matmul, str]] = [
    (Matmul("INT16", (2, 3, 4), adj_x=True), "adj_x"),
    (Matmul("FLOAT32", (2, 3, 4), ((5,), (5,))), "one matrix"),
    (Matmul("INT16", (2, 3, 4), is_constant=False), "constant"),
    (Matmul("FLOAT32", (2, 3, 4), ((2, 3), ())), "one axis of matrices"),
    (Matmul("INT16", (2, 3, 4), y_scale=1e-10), "results of 32 bits"),
]


@pytest.mark.parametrize(("matmul", "reason"), REFUSED)
def test_the_rest_is_refused(matmul: Matmul, reason: str) -> None:
    ours, _ = matmul.interpreters()
    assert reason in str(ours.placement.nodes[0].rejections["numba_cpu"])


def test_empty_stacks_may_have_any_axes() -> None:
    Matmul("FLOAT32", (2, 3, 4), ((7, 0, 2), ())).assert_agrees()


def test_stacks_that_turn_out_to_have_several_axes_are_an_error() -> None:
    ours, _ = Matmul("FLOAT32", (2, 3, 4), ((1, 3), ())).interpreters()
    assert ours.placement.nodes[0].delegate == "numba_cpu"
    ours.resize_tensor_input(0, (2, 3, 2, 3))
    with pytest.raises(DelegraphError, match="one axis of matrices"):
        ours.allocate_tensors()
