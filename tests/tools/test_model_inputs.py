from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike

from delegraph.errors import ArgumentError
from delegraph.tools.model_inputs import input_values, random_values


def details(
    dtype: DTypeLike, shape: list[int], signature: list[int] | None = None, scale: float = 0.0
) -> dict[str, Any]:
    """An entry as ``get_input_details`` gives it."""
    return {
        "name": "x",
        "index": 0,
        "dtype": np.dtype(dtype).type,
        "shape": np.array(shape, np.int32),
        "shape_signature": np.array(shape if signature is None else signature, np.int32),
        "quantization": (scale, 3),
    }


RNG = np.random.default_rng


@pytest.mark.parametrize("dtype", ["f4", "f2", "i1", "u1", "i2", "i4", "i8", "?", "c8"])
def test_random_values_have_the_inputs_dtype_and_shape(dtype: str) -> None:
    values = random_values(details(dtype, [50, 40]), RNG(0))
    assert (values.dtype, values.shape) == (np.dtype(dtype), (50, 40))
    assert len(np.unique(values)) > 1
    again = random_values(details(dtype, [50, 40]), RNG(0))
    np.testing.assert_array_equal(values, again)


def test_random_bytes_take_their_whole_range() -> None:
    values = random_values(details("i1", [100_000]), RNG(0))
    assert (values.min(), values.max()) == (-128, 127)


def test_random_ids_are_small() -> None:
    assert set(random_values(details("i4", [100]), RNG(0)).tolist()) == {0, 1}


def test_random_strings_are_empty() -> None:
    values = random_values(details(np.bytes_, [2]), RNG(0))
    assert values.tolist() == [b"", b""]


@pytest.mark.parametrize(
    ("text", "entry", "expected"),
    [
        ("zeros", details("i1", [2, 2]), [[0, 0], [0, 0]]),
        ("2", details("f4", [2, 1]), [[2], [2]]),
        ("-1.5e2, .5", details("f4", [2]), [-150, 0.5]),
        ("1,2,3,4", details("u1", [2, 2]), [[1, 2], [3, 4]]),
        ("7", details("i8", []), 7),
        ("1", details("?", [2]), [True, True]),
        ("1,2,3", details("f4", [1], [-1]), [1, 2, 3]),
        ("1,2,3,4", details("i4", [1, 2], [-1, 2]), [[1, 2], [3, 4]]),
        ("nan", details("f4", [2]), [np.nan, np.nan]),
        ("-inf, NaN", details("f4", [2]), [-np.inf, np.nan]),
    ],
)
def test_numbers_are_taken_as_stored(text: str, entry: dict[str, Any], expected: Any) -> None:
    values = input_values(text, entry, RNG(0))
    assert values.dtype == entry["dtype"]
    np.testing.assert_array_equal(values, expected)


def test_one_number_with_a_point_makes_all_of_a_quantized_input_real() -> None:
    entry = details("i1", [2], scale=0.5)
    assert input_values("1,2", entry, RNG(0)).tolist() == [1, 2]
    assert input_values("1.0,2", entry, RNG(0)).tolist() == [5, 7]


@pytest.mark.parametrize(
    ("text", "entry", "message"),
    [
        ("1,2", details("f4", [3]), r"2 numbers are given, expected 1 or 3"),
        ("1,2,3", details("f4", [1, 2], [-1, 2]), r"3 numbers are .* 1 or a multiple of 2$"),
        ("1,2", details("f4", [1, 1], [-1, -1]), r"2 numbers are given, expected 1$"),
        ("1,2", details("f4", [1]), r"2 numbers are given, expected 1$"),
        ("300", details("u1", [1]), r"'300' does not fit uint8"),
        ("1.5", details("i4", [1]), r"'1.5' does not fit int32"),
        ("nan", details("i1", [1]), r"'nan' does not fit int8"),
        (
            "1e40",
            details("f4", [1]),
            r"holds 1e.40, which is out of the range of float32; inf means",
        ),
        (
            "nano",
            details("f4", [1]),
            r"takes numbers, not 'nano': give 'random', 'zeros', a number, nan",
        ),
        ("1,x", details("f4", [2]), r"input 'x' \(float32 \[2\]\) takes numbers, not '1,x': give"),
        (
            "a nice film",
            details("i4", [1, 256]),
            r"not 'a nice film': a text needs a tokenizer in the model's metadata; without one "
            r"give .* or a file, .npy or .npz$",
        ),
        ("1.2.3", details("f4", [2]), r"'1.2.3' holds no numbers"),
        (
            "y.txt",
            details("f4", [2]),
            r"one number for all 2, all of them with commas, nan, inf, or a file: .npy",
        ),
    ],
)
def test_numbers_that_do_not_fit_are_refused(
    text: str, entry: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        input_values(text, entry, RNG(0))


@pytest.mark.parametrize(
    ("stored", "entry", "shape"),
    [
        (np.ones((1, 4), "f4"), details("f4", [1, 4]), (1, 4)),
        (np.ones((4,), "f8"), details("f4", [1, 4]), (1, 4)),
        (np.ones((3, 4), "f4"), details("f4", [1, 4], [-1, 4]), (3, 4)),
        (np.ones((4,), "i8"), details("i4", [4]), (4,)),
        (np.array([0, 255]), details("u1", [2], scale=0.5), (2,)),
        (np.float64([np.inf, np.nan]), details("f4", [2]), (2,)),
        (np.array([b"ab", b"c"]), details(np.bytes_, [2]), (2,)),
    ],
)
def test_a_file_is_fitted_where_nothing_is_lost(
    tmp_path: Path, stored: np.ndarray, entry: dict[str, Any], shape: tuple[int, ...]
) -> None:
    np.save(tmp_path / "x.npy", stored)
    values = input_values(str(tmp_path / "x.npy"), entry, RNG(0))
    assert values.shape == shape
    assert values.dtype == (object if entry["dtype"] is np.bytes_ else entry["dtype"])


def test_real_numbers_for_a_quantized_input_are_quantized(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.float32([-2, 0.2, 0.3, 127]))
    values = input_values(str(tmp_path / "x.npy"), details("u1", [4], scale=0.5), RNG(0))
    assert values.tolist() == [0, 3, 4, 255]  # with a zero point of 3
    assert values.dtype == np.uint8


@pytest.mark.parametrize(
    ("stored", "entry", "message"),
    [
        (np.ones(3, "f4"), details("f4", [4]), r"has shape \[3\], expected \[4\]"),
        (np.ones((2, 4), "f4"), details("f4", [4]), r"has shape \[2, 4\], expected \[4\]"),
        (np.ones(4, "f4"), details("u1", [4]), "holds float32, expected uint8$"),
        (
            np.float32([0, 300, 1, 2]),
            details("u1", [4], scale=0.5),
            "float32 from 0 to 300, expected uint8, or real numbers from -1.5 to 126, which are",
        ),
        (
            np.float32([0, np.nan, 1, 2]),
            details("u1", [4], scale=0.5),
            "float32 from nan to nan, expected uint8",
        ),
        (
            np.full(4, 300),
            details("i1", [4]),
            "holds 300, .* out of the range of int8: -128 to 127",
        ),
        (
            np.array([0, 1, 2, -1]),
            details("u1", [4]),
            "holds -1, which is out of the range of uint8",
        ),
        (
            np.float64([1, np.inf, 1e40, 2]),
            details("f4", [4]),
            "holds 1e.40, which is out of the ra",
        ),
        (np.array([{}]), details("f4", [1]), "cannot be read"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    tmp_path: Path, stored: np.ndarray, entry: dict[str, Any], message: str
) -> None:
    np.save(tmp_path / "x.npy", stored, allow_pickle=True)
    with pytest.raises(ArgumentError, match=message):
        input_values(str(tmp_path / "x.npy"), entry, RNG(0))
