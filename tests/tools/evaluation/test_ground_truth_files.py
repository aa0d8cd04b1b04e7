from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.ground_truth_files import read_ground_truth, read_picture_ids


def test_numbers_are_read_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "minival.txt"
    path.write_bytes(b"25096\r\n232538\n\n 42 \n")
    assert read_picture_ids(str(path)) == [25096, 232538, 42]


@pytest.mark.parametrize("text", ["12\nabc\n", "12\n-3\n", "12\n1.5\n"])
def test_a_line_that_is_no_number_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "minival.txt"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=r"minival\.txt', line 2: expected the number of"):
        read_picture_ids(str(path))


def test_a_list_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "minival.txt"
    path.write_bytes(b"\xff\xd8")
    with pytest.raises(ArgumentError, match="expected a text file in UTF-8"):
        read_picture_ids(str(path))


def test_another_kind_of_file_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"expected ground truth in a \.json file"):
        read_ground_truth("truth.pbtxt")


def test_the_reader_follows_from_the_name(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"images": [], "annotations": []}')
    (tmp_path / "a.pb").write_bytes(b"")
    assert read_ground_truth(str(tmp_path / "a.json")).pictures == ()
    assert read_ground_truth(str(tmp_path / "a.pb")).pictures == ()
