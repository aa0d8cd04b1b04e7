from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.npz_rows import npz_rows


def write(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


def test_the_first_axis_of_every_array_counts_the_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz", x=np.arange(6).reshape(3, 2), label=np.int64([7, 8, 9]))
    rows = npz_rows([path, write(tmp_path / "b.npz", x=np.zeros((1, 2)), label=[0])])
    assert [row.key for row in rows] == [f"{path}[{i}]" for i in range(3)] + [f"{rows[3].path}[0]"]
    assert {name: array.tolist() for name, array in rows[1].arrays().items()} == {
        "x": [2, 3],
        "label": 8,
    }


def test_a_row_is_told_from_any_other_by_values_names_and_types(tmp_path: Path) -> None:
    kinds: list[dict[str, Any]] = [
        {"x": np.float32([[1, 2]])},
        {"x": np.float32([[1, 3]])},
        {"y": np.float32([[1, 2]])},
        {"x": np.float32([[[1], [2]]])},
        {"x": np.float32([[1, 2]]).view(np.int32)},
        {"x": np.float32([[1, 2]]), "y": [0]},
    ]
    digests = [
        npz_rows([write(tmp_path / f"{number}.npz", **arrays)])[0].digest()
        for number, arrays in enumerate(kinds)
    ]
    assert len(set(digests)) == len(kinds)
    assert npz_rows([write(tmp_path / "again.npz", **kinds[0])])[0].digest() == digests[0]


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    for value in (1, 2):
        assert npz_rows([write(path, x=[value])])[0].arrays()["x"] == value


def test_a_file_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz", x=[1])
    with pytest.raises(ArgumentError, match=r"a\.npz' is given twice"):
        npz_rows([path, str(tmp_path / "." / "a.npz")])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((3, 2)), "label": np.zeros(2)}, r"'label' \[2\], 'x' \[3\]"),
        ({"x": np.zeros((3, 2)), "label": np.float32(1)}, r"'label' \[\], 'x' \[3\]"),
        ({"x": np.float32(1)}, r"'x' \[\]"),
        ({}, "got no array"),
    ],
)
def test_arrays_of_other_numbers_of_rows_are_refused(
    tmp_path: Path, arrays: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        npz_rows([write(tmp_path / "a.npz", **arrays)])


def test_what_is_no_npz_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"no zip")
    with pytest.raises(ArgumentError, match=r"a\.npz' cannot be read"):
        npz_rows([str(tmp_path / "a.npz")])
