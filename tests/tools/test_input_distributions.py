from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.input_distributions import DISTRIBUTIONS, SENTENCE, distributed_inputs


def details(dtype: Any, shape: tuple[int, ...] = (64, 64), name: str = "x") -> dict[str, Any]:
    return {"name": name, "dtype": dtype, "shape": np.array(shape, np.int32)}


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (np.int32, 0, 99),
        (np.int64, 0, 99),
        (np.uint32, 0, 99),
        (np.uint8, 0, 254),
        (np.int8, -127, 127),
    ],
)
def test_benchmark_integers_take_the_official_ranges(dtype: Any, low: int, high: int) -> None:
    (values,) = distributed_inputs([details(dtype)], "benchmark", 0)
    assert (values.dtype, values.min(), values.max()) == (dtype, low, high)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_benchmark_floats_are_within_a_half(dtype: Any) -> None:
    (values,) = distributed_inputs([details(dtype)], "benchmark", 0)
    assert values.dtype == dtype
    assert -0.5 <= values.min() < -0.49
    assert 0.49 < values.max() <= 0.5


def test_a_range_of_ones_own_includes_both_ends() -> None:
    (values,) = distributed_inputs([details(np.int32)], "benchmark", 0, {"x": (3, 5)})
    assert set(values.ravel()) == {3, 4, 5}


def test_a_range_for_no_input_is_refused() -> None:
    with pytest.raises(ArgumentError, match="no input 'y'; the inputs are 'x'"):
        distributed_inputs([details(np.int32)], "benchmark", 0, {"y": (3, 5)})


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_inference_diff_integers_are_spread_over_the_type(dtype: Any) -> None:
    (values,) = distributed_inputs([details(dtype)], "inference_diff", 0)
    limits = np.iinfo(dtype)
    spread = float(limits.max) - float(limits.min)
    shares = (values.astype(np.float64) - float(limits.min)) / spread
    assert shares.min() < 0.02
    assert shares.max() > 0.98
    assert shares.mean() == pytest.approx(0.5, abs=0.02)


def test_inference_diff_floats_are_a_cut_normal_distribution() -> None:
    (values,) = distributed_inputs([details(np.float32)], "inference_diff", 0)
    assert -1 <= values.min() < values.max() < 1
    # a normal of deviation 2/3 cut at 1.5 deviations has one of 0.7432 times that
    assert values.std() == pytest.approx(0.7432 * 2 / 3, abs=0.01)


def test_inference_diff_truth_values_are_practically_all_true() -> None:
    (values,) = distributed_inputs([details(np.bool_)], "inference_diff", 0)
    assert values.all()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_same_seed_gives_the_same_values(distribution: Any) -> None:
    inputs = [details(np.float32), details(np.int8, (3,), "y")]
    first, again = (distributed_inputs(inputs, distribution, 7) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    other = distributed_inputs(inputs, distribution, 8)
    assert not np.array_equal(first[0], other[0])


def test_strings_get_a_sentence() -> None:
    (values,) = distributed_inputs([details(np.bytes_, (2,))], "benchmark", 0)
    assert values.tolist() == [SENTENCE, SENTENCE]
