"""Sums, differences and products of int16 beside Delegraph's kernels, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from beside_kernels import results
from delegraph.testing import one_op_model, tensor

SCALES = [(0.5, 0.3, 0.7), (0.5, 0.3, 3e-5), (1e-4, 2e-3, 1e-5), (2**-15, 2**-14, 2**-14)]


@pytest.mark.parametrize("shape", [(4, 2501), (4, 1)], ids=["same shape", "broadcast"])
@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
def test_result_is_that_of_the_kernel(
    name: str, scales: tuple[float, float, float], shape: tuple[int, ...]
) -> None:
    """Operands nearly cancel out: the vector loop of ADD rounds them otherwise than the rest."""
    generator = np.random.default_rng(0)
    shapes = (4, 2501), shape, (4, 2501)
    b = generator.integers(-32768, 32768, shape)
    a = -np.rint(np.broadcast_to(b, shapes[0]) * scales[1] / scales[0])
    operands = [each.clip(-32768, 32767).astype(np.int16) for each in (a, b)]
    tensors = [
        tensor(each, "INT16", scale=scale) for each, scale in zip(shapes, scales, strict=True)
    ]

    expected, found = results(one_op_model(name, tensors[:2], tensors[2:]), operands)

    np.testing.assert_array_equal(found, expected)
