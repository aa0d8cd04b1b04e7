"""Which tensor is which, and values of one as another takes them, against slow definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.differing.matching import (
    clipped,
    converted,
    matched,
    matched_inputs,
    matched_names,
)
from support import tensor_details


def details(
    name: str, dtype: Any, scale: float = 0.0, zero_point: int = 0, shape: tuple[int, ...] = (4,)
) -> dict[str, Any]:
    entry = tensor_details.details(dtype, *shape, name=name, scale=scale, zero_point=zero_point)
    return entry | {
        "quantization_parameters": {
            "scales": np.float32([scale] if scale else []),
            "zero_points": np.int32([zero_point] if scale else []),
            "quantized_dimension": 0,
        }
    }


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_floats_are_rounded_to_the_nearest_step_in_range(dtype: Any) -> None:
    target = details("q", dtype, 0.25, 3)
    values = np.float32([-1e6, -1.0, 0.1, 0.13, 2.0, 1e6])
    limits = np.iinfo(dtype)
    expected = [max(limits.min, min(limits.max, round(float(v) / 0.25) + 3)) for v in values]
    found = converted(values, details("f", np.float32), target)
    assert found.dtype == dtype
    assert found.tolist() == expected


def test_steps_become_the_numbers_that_they_stand_for() -> None:
    found = converted(
        np.int8([-128, 3, 7]), details("q", np.int8, 0.5, 3), details("f", np.float32)
    )
    assert (found.dtype, found.tolist()) == (np.float32, [-65.5, 0.0, 2.0])


def test_steps_of_one_scale_become_those_of_another() -> None:
    source, target = details("a", np.int8, 0.5, 1), details("b", np.uint8, 0.25, 10)
    assert converted(np.int8([1, 2, 3]), source, target).tolist() == [10, 12, 14]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])
def test_the_same_type_and_scale_stay_as_they_are(dtype: Any) -> None:
    scale = 0.5 if dtype is np.int8 else 0.0
    values = np.arange(4).astype(dtype)
    found = converted(values, details("a", dtype, scale), details("b", dtype, scale))
    assert found is values


def test_indices_are_no_real_numbers() -> None:
    plain, scaled = details("i", np.int32), details("q", np.int32, 0.5)
    assert converted(np.int32([4]), plain, scaled).tolist() == [4]
    with pytest.raises(ArgumentError, match="'i' is int32 and 'f' float32"):
        converted(np.int32([4]), plain, details("f", np.float32))


def test_values_beyond_the_range_of_integers_are_counted() -> None:
    source, target = details("f", np.float32), details("q", np.int8, 0.25, -128)
    values = np.float32([-1e6, -0.3, -0.1, 0.0, 63.8, 63.9, 64.1, 1e6])
    assert clipped(values, converted(values, source, target), source, target) == 4
    assert clipped(values, values, source, source) == 0
    assert clipped(np.int8([4]), np.float32([33]), target, source) == 0


def test_not_a_number_is_not_hidden_in_a_float() -> None:
    found = converted(np.float32([math.nan, 1]), details("f", np.float32), details("h", np.float16))
    assert math.isnan(found[0])
    with pytest.raises(ArgumentError, match="'f' holds NaN, which no int8 stands for"):
        converted(np.float32([math.nan]), details("f", np.float32), details("q", np.int8, 1.0))


def test_names_that_occur_twice_match_nothing() -> None:
    one = [{"name": n} for n in ("a", "b", "b", "")]
    other = [{"name": n} for n in ("", "b", "a")]
    assert matched_names(one, other) == {0: 2}
    assert matched(one, other) == ([(0, 2)], [1, 2, 3], [0, 1])


def test_equal_names_match_by_position_whatever_they_are() -> None:
    one = [{"name": n} for n in ("a", "", "", "b", "b")]
    assert matched(one, one) == ([(i, i) for i in range(5)], [], [])


def test_without_a_common_name_positions_match() -> None:
    one, other = [{"name": "a"}, {"name": "b"}], [{"name": "x"}]
    assert matched(one, other) == ([(0, 0)], [1], [])


def test_inputs_of_which_only_some_share_a_name_match_by_position() -> None:
    one = [details("a", np.float32), details("b", np.float32)]
    other = [details("b", np.float32), details("c", np.float32)]
    assert matched_inputs(one, other) == [0, 1]


def test_an_open_dimension_fits_any() -> None:
    one = details("x", np.float32, shape=(1, 8))
    other = details("x", np.float32, shape=(-1, 8))
    assert matched_inputs([one], [other]) == [0]
    with pytest.raises(ArgumentError, match="cannot take the same values"):
        matched_inputs([one], [details("x", np.float32, shape=(-1, 9))])
