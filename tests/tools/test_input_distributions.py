from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph.tools.input_distributions import SENTENCE, Distribution, distributed_values
from support.tensor_details import details


def values_of(
    entry: dict[str, Any], distribution: Any, seed: int = 0, between: tuple[int, int] | None = None
) -> NDArray[Any]:
    return distributed_values(entry, distribution, np.random.default_rng(seed), between)


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
    values = values_of(details(dtype, 64, 64), "benchmark")
    assert (values.dtype, values.min(), values.max()) == (dtype, low, high)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_benchmark_floats_are_within_a_half(dtype: Any) -> None:
    values = values_of(details(dtype, 64, 64), "benchmark")
    assert values.dtype == dtype
    assert -0.5 <= values.min() < -0.49
    assert 0.49 < values.max() <= 0.5


def test_a_range_of_ones_own_includes_both_ends() -> None:
    values = values_of(details(np.int32, 64, 64), "benchmark", between=(3, 5))
    assert set(values.ravel()) == {3, 4, 5}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_inference_diff_integers_are_spread_over_the_type(dtype: Any) -> None:
    values = values_of(details(dtype, 64, 64), "inference_diff")
    limits = np.iinfo(dtype)
    spread = float(limits.max) - float(limits.min)
    shares = (values.astype(np.float64) - float(limits.min)) / spread
    assert shares.min() < 0.02
    assert shares.max() > 0.98
    assert shares.mean() == pytest.approx(0.5, abs=0.02)


def test_inference_diff_floats_are_a_cut_normal_distribution() -> None:
    values = values_of(details(np.float32, 64, 64), "inference_diff")
    assert -1 <= values.min() < values.max() < 1
    # a normal of deviation 2/3 cut at 1.5 deviations has one of 0.7432 times that
    assert values.std() == pytest.approx(0.7432 * 2 / 3, abs=0.01)


def test_inference_diff_truth_values_are_practically_all_true() -> None:
    values = values_of(details(np.bool_, 64, 64), "inference_diff")
    assert values.all()


@pytest.mark.parametrize("distribution", get_args(Distribution))
def test_the_same_seed_gives_the_same_values(distribution: Any) -> None:
    first, again, other = (
        values_of(details(np.float32, 64, 64), distribution, seed) for seed in (7, 7, 8)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_strings_get_a_sentence() -> None:
    values = values_of(details(np.bytes_, 2), "benchmark")
    assert values.tolist() == [SENTENCE, SENTENCE]


def test_values_outside_are_drawn_again_from_whole_arrays() -> None:
    """So a seed gives the values that it gave in earlier releases."""
    rng = np.random.default_rng(3)
    expected = rng.normal(0.5, 1 / 3, (20, 30))
    while (outside := (expected < 0) | (expected >= 1)).any():
        expected = np.where(outside, rng.normal(0.5, 1 / 3, (20, 30)), expected)
    wanted = details(np.float32, 20, 30)
    found = distributed_values(wanted, "inference_diff", np.random.default_rng(3))
    assert np.array_equal(found, (2 * expected - 1).astype(np.float32))
