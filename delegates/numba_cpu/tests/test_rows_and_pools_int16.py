"""SOFTMAX and pools of int16, against Delegraph's own kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import levels, results
from delegraph.schema import options as o
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import Padding
from delegraph.testing import cases, fed, operator_case, tensor
from delegraph.testing.operator_case import OperatorCase
from test_elementwise import Watched, check

POOLS = ["AVERAGE_POOL_2D", "MAX_POOL_2D"]


def values(*shape: int) -> NDArray[np.int16]:
    """Return values of the whole range, one in four of its ends."""
    generator = np.random.default_rng(shape)
    ends = generator.choice([-32768, -1, 0, 1, 32767], shape)
    whole = generator.integers(-32768, 32768, shape)
    return np.where(generator.random(shape) < 0.25, ends, whole).astype(np.int16)


@levels
@pytest.mark.parametrize("op", [*POOLS, "SOFTMAX"])
def test_registered_cases_of_int16_are_taken(op: str, level: str) -> None:
    taken = 0
    for case in cases(op, count=30):
        main = (case.records.subgraphs or ())[0]
        if (main.tensors or ())[0].type.name == "INT16":
            try:
                expected, _ = results(case)
            except Exception:  # noqa: BLE001  # whatever the core says of it
                continue
            (found,), is_taken = results(case, Watched(level))
            np.testing.assert_array_equal(found, expected[0])
            taken += is_taken
    assert taken > 5


def softmax_case(x: NDArray[np.int16], scale: float, beta: float = 1.0) -> OperatorCase:
    output = tensor((), "INT16", scale=1 / 32768)
    return operator_case(
        "SOFTMAX", [fed(x, scale=scale)], [output], o.SoftmaxOptions(beta=beta), version=3
    )


@levels
@pytest.mark.parametrize("length", [1, 2, 17, 1000])
@pytest.mark.parametrize("scale", [1e-6, 3e-4, 0.01, 30.0])
def test_rows_of_any_length_and_scale(length: int, scale: float, level: str) -> None:
    check(softmax_case(values(7, length), scale), level)


@levels
def test_long_rows_are_added_up_exactly(level: str) -> None:
    check(softmax_case(np.full((2, 60_000), 5, np.int16), 3e-4), level)
    check(softmax_case(values(3, 5, 40), 3e-4, beta=7.5), level, threads=3)


@levels
@pytest.mark.parametrize("op", POOLS)
@pytest.mark.parametrize(("window", "stride"), [((2, 2), 2), ((3, 5), 1), ((1, 1), 3), ((9, 9), 4)])
def test_any_windows(op: str, window: tuple[int, int], stride: int, level: str) -> None:
    for padding in (Padding.SAME, Padding.VALID):
        options: Any = o.Pool2DOptions(
            padding=padding, filter_height=window[0], filter_width=window[1],
            stride_h=stride, stride_w=stride, fused_activation_function=Act.RELU,
        )  # fmt: skip
        x = fed(values(2, 11, 12, 19), scale=0.01)
        case = operator_case(op, [x], [tensor((), "INT16", scale=0.01)], options, version=3)
        check(case, level)


@levels
@pytest.mark.parametrize("type", ["INT8", "UINT8"])
@pytest.mark.parametrize("zero_point", [-32768, -5, 0, 32767])
@pytest.mark.parametrize("scale", [1 / 32768, 1 / 65536, 1e-9])
def test_rows_of_bytes_become_int16(type: str, zero_point: int, scale: float, level: str) -> None:
    x = np.random.default_rng(5).integers(0, 256, (9, 33)).astype(np.uint8).view(type.lower())
    case = operator_case(
        "SOFTMAX",
        [fed(x, type, scale=0.04, zero_point=7)],
        [tensor((), "INT16", scale=scale, zero_point=zero_point)],
        o.SoftmaxOptions(beta=1.0),
        version=2,
    )
    check(case, level)
