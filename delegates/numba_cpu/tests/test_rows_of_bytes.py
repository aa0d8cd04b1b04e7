"""LOG_SOFTMAX and L2_NORMALIZATION of 8-bit rows, against Delegraph's own kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegated import levels, results
from delegraph.schema import options as o
from delegraph.testing import fed, operator_case, tensor
from delegraph.testing.operator_case import OperatorCase
from test_elementwise import Watched, check

OUTPUTS: dict[tuple[str, str], tuple[float, int]] = {
    ("LOG_SOFTMAX", "INT8"): (16 / 256, 127),
    ("LOG_SOFTMAX", "UINT8"): (16 / 256, 255),
    ("L2_NORMALIZATION", "INT8"): (1 / 128, 0),
    ("L2_NORMALIZATION", "UINT8"): (1 / 128, 128),
}
kinds = pytest.mark.parametrize(("op", "type"), OUTPUTS)


def rows(count: int, length: int, spread: int = 256) -> Any:
    """Return rows of bytes, each of numbers from a range of *spread*."""
    rng = np.random.default_rng([count, length, spread])
    low = rng.integers(0, 257 - spread, (count, 1))
    return (low + rng.integers(0, spread, (count, length))).astype(np.uint8)


def case(op: str, type: str, values: Any, scale: float, zero_point: int) -> OperatorCase:
    stored = values if type == "UINT8" else (values ^ 0x80).view(np.int8)
    zero = zero_point if type == "UINT8" else zero_point - 128
    output_scale, output_zero = OUTPUTS[op, type]
    options = o.L2NormOptions() if op == "L2_NORMALIZATION" else o.LogSoftmaxOptions()
    y = tensor((), type, scale=output_scale, zero_point=output_zero)
    return operator_case(op, [fed(stored, type, scale=scale, zero_point=zero)], [y], options)


@levels
@kinds
@pytest.mark.parametrize("scale", [0.001, 0.05, 2.0])
def test_rows_are_normalised_to_the_bit(op: str, type: str, scale: float, level: str) -> None:
    for length in (1, 7, 16, 33, 1001):
        for spread in (1, 9, 256):
            check(case(op, type, rows(40, length, spread), scale, 100), level)


@levels
@pytest.mark.parametrize("type", ["INT8", "UINT8"])
def test_lengths_of_all_sizes_are_normalised_to_the_bit(type: str, level: str) -> None:
    """Pairs of bytes have every norm from 0 on; a row of the largest bytes has the largest norm."""
    first, second = np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2)
    pairs = np.stack([first, second], -1).reshape(-1, 2)
    for values, zero in ((pairs, 128), (pairs, 0), (np.full((1, 33_000), 255, np.uint8), 0)):
        check(case("L2_NORMALIZATION", type, values, 0.1, zero), level)


def test_rows_too_long_for_31_bits_stay_with_the_core() -> None:
    _, is_taken = results(
        case("L2_NORMALIZATION", "INT8", rows(1, 33_026), 0.1, 3), Watched("auto")
    )
    assert not is_taken
