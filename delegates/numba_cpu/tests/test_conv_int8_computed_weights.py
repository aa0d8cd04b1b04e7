"""FULLY_CONNECTED with weights that are computed, against Delegraph's own kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import delegated, levels, run
from delegraph import Interpreter, Rejection
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.options import FullyConnectedOptions
from delegraph.testing import constant, fed, one_op_model, operator_case, tensor
from single_operator import Alone

SIZES = [(1, 5, 3), (7, 33, 16), (6, 64, 100), (20, 7, 65), (3, 130, 64)]
RELU6 = FullyConnectedOptions(fused_activation_function=Act.RELU6)


def results(
    model: bytes, inputs: list[NDArray[Any]], level: str
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return what the delegate and Delegraph make of inputs, and of their negatives."""
    ours, theirs = delegated(model, level, num_threads=2), Interpreter(model_content=model)
    assert ours.placement.nodes[0].delegate == "numba_cpu"
    given = (inputs, [~array if array.dtype == np.int8 else -array for array in inputs])
    return [(run(ours, *each), run(theirs, *each)) for each in given]


@levels
@pytest.mark.parametrize(("rows", "depth", "columns"), SIZES)
@pytest.mark.parametrize("bias", ["none", "constant", "computed"])
def test_floats(level: str, rows: int, depth: int, columns: int, bias: str) -> None:
    generator = np.random.default_rng([rows, depth])
    shapes = (rows, depth), (columns, depth), (columns,)
    x, w, b = (generator.standard_normal(shape).astype(np.float32) for shape in shapes)
    given = {"none": [], "constant": [constant(b)], "computed": [tensor((columns,))]}[bias]
    model = one_op_model(
        "FULLY_CONNECTED", [tensor(x.shape), tensor(w.shape), *given], [tensor((1, 1))], RELU6
    )
    inputs = [x, w, b] if bias == "computed" else [x, w]
    for found, expected in results(model, inputs, level):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@levels
@pytest.mark.parametrize(("rows", "depth", "columns"), SIZES)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(
    ("zero_points", "is_per_channel"),
    [((3, -7, 5), False), ((-128, 127, -128), False), ((-128, 0, 3), True)],
)
def test_int8(
    level: str,
    rows: int,
    depth: int,
    columns: int,
    has_bias: bool,
    zero_points: tuple[int, int, int],
    is_per_channel: bool,
) -> None:
    generator = np.random.default_rng([rows, depth])
    x, w = (
        generator.integers(-128, 128, shape).astype(np.int8)
        for shape in ((rows, depth), (columns, depth))
    )
    bias = generator.integers(-9000, 9000, columns).astype(np.int32)
    weight_scale = generator.uniform(0.003, 0.03, columns).tolist() if is_per_channel else 0.01
    scales = (0.02, weight_scale, 0.02 * 0.01 * 90 * depth**0.5)
    given = [
        tensor(shape, "INT8", scale=scale, zero_point=zero_point)
        for shape, scale, zero_point in zip(
            (x.shape, w.shape, (1, 1)), scales, zero_points, strict=True
        )
    ]
    rest = [constant(bias, scale=0.0002)] if has_bias else []
    model = one_op_model("FULLY_CONNECTED", [*given[:2], *rest], given[2:], RELU6)
    for found, expected in results(model, [x, w], level):
        np.testing.assert_array_equal(found, expected)


def test_a_bias_of_another_length_than_the_outputs_is_left_to_the_core() -> None:
    x, w = (fed(np.zeros(shape, np.int8), scale=0.1) for shape in ((1, 5), (2, 5)))
    bias, y = constant(np.zeros(3, np.int32), scale=0.01), tensor((1, 2), "INT8", scale=0.5)
    rejection = Alone(operator_case("FULLY_CONNECTED", [x, w, bias], [y], RELU6)).check()
    assert isinstance(rejection, Rejection)
    assert rejection.constraint == "bias"
