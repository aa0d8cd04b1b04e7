from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from delegraph.errors import ArgumentError
from delegraph.tools import PictureFile
from delegraph.tools.evaluation.picture_files import chosen, picture_names
from support.pictured import coloured


def test_files_come_in_the_order_of_their_bytes_without_folders(tmp_path: Path) -> None:
    for name in ("b.jpg", "B.JPG", "a10.jpg", "a9.png", "é.jpg", "a.rgb8"):
        (tmp_path / name).touch()
    (tmp_path / "a_folder").mkdir()
    names = ["B.JPG", "a.rgb8", "a10.jpg", "a9.png", "b.jpg", "é.jpg"]
    assert picture_names(str(tmp_path)) == (names, [])


def test_hidden_files_and_other_names_are_no_pictures(tmp_path: Path) -> None:
    others = [".DS_Store", "._a.jpg", "README", "Thumbs.db", "labels.txt"]
    for name in ("a.jpg", "b.TIF", *others):
        (tmp_path / name).touch()
    assert picture_names(str(tmp_path)) == (["a.jpg", "b.TIF"], others)


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no text are Linux's")
def test_names_that_are_no_text_have_their_place(tmp_path: Path) -> None:
    for name in (b"a\xff.jpg", b"a\xef\xbf\xbd.jpg"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).touch()
    names = [os.fsencode(name) for name in picture_names(str(tmp_path))[0]]
    assert names == [b"a\xef\xbf\xbd.jpg", b"a\xff.jpg"]


def test_a_folder_that_is_missing_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"holds no picture; a picture's name has an ending"):
        picture_names(str(tmp_path))
    (tmp_path / "README").touch()
    with pytest.raises(ArgumentError, match="holds no picture: its 1 file 'README'; a picture"):
        picture_names(str(tmp_path))
    (tmp_path / "cats").mkdir()
    with pytest.raises(ArgumentError, match="'README'; pictures in folders below do not count; a"):
        picture_names(str(tmp_path))
    with pytest.raises(ArgumentError, match=r"folder '.*missing': No such file or directory"):
        picture_names(str(tmp_path / "missing"))


def test_the_limit_counts_what_the_denylist_leaves() -> None:
    assert chosen(6, {1, 4}, 3) == [1, 2, 4]
    assert list(chosen(3)) == [0, 1, 2]


def test_content_and_truth_make_the_digest(tmp_path: Path) -> None:
    first, second = coloured(tmp_path, ["red", "green"])
    assert first.digest() == PictureFile(first.path, "red").digest()
    assert len({first.digest(), second.digest(), PictureFile(first.path, "blue").digest()}) == 3


def test_what_is_no_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff not a jpeg")
    with pytest.raises(ArgumentError, match=r"picture '.*a\.jpg' cannot be read"):
        PictureFile(str(tmp_path / "a.jpg")).pixels(4, 6)
    with pytest.raises(ArgumentError, match=r"gone\.rgb8' cannot be read: No such file"):
        PictureFile(str(tmp_path / "gone.rgb8")).pixels(4, 6)
