from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.errors import ArgumentError
from delegraph.tools import labelled_pictures
from delegraph.tools.evaluation.labelled_pictures import read_words
from support.pictured import write_pictures

WORDS = ["red", "green", "blue", "red", "green"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_pictures(tmp_path / "pictures", WORDS)
    return tmp_path / "pictures"


def lines(folder: Path, name: str, *words: str) -> str:
    path = folder.parent / name
    path.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    return str(path)


def test_line_i_belongs_to_file_i(folder: Path) -> None:
    pictures = labelled_pictures(str(folder), lines(folder, "truth.txt", *WORDS))
    assert [(p.key, p.truth) for p in pictures] == [
        (f"{number:02}.png", word) for number, word in enumerate(WORDS)
    ]


def test_a_table_has_names_in_any_order(folder: Path) -> None:
    rows = [f'{number:02}.png,"{word}, a colour"' for number, word in enumerate(WORDS)]
    truth = lines(folder, "truth.csv", "picture,class", *reversed(rows))
    pictures = labelled_pictures(str(folder), truth)
    assert [p.truth for p in pictures] == [f"{word}, a colour" for word in WORDS]


def test_denied_pictures_keep_their_lines_and_go_before_the_limit(folder: Path) -> None:
    truth, denylist = lines(folder, "truth.txt", *WORDS), lines(folder, "deny.txt", "1", "", "3")
    pictures = labelled_pictures(str(folder), truth, denylist, num_images=2)
    assert [(p.key, p.truth) for p in pictures] == [("01.png", "green"), ("03.png", "red")]


def test_another_count_of_lines_says_both(folder: Path) -> None:
    truth = lines(folder, "truth.txt", *WORDS[1:])
    message = r"truth\.txt' has 4 lines, and .*pictures' 5 pictures \(the first is '00\.png', the "
    with pytest.raises(ArgumentError, match=message):
        labelled_pictures(str(folder), truth)


def test_files_that_are_no_pictures_are_left_out_with_a_warning(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in (".DS_Store", "README"):
        (folder / name).touch()
    truth = lines(folder, "truth.txt", *WORDS)
    assert len(labelled_pictures(str(folder), truth)) == len(WORDS)
    assert "2 files left out, hidden or no picture by name: '.DS_Store', 'README'" in caplog.text
    truth = lines(folder, "truth.txt", *WORDS[1:])
    with pytest.raises(ArgumentError, match="besides 2 other files; expected one line for each"):
        labelled_pictures(str(folder), truth)


@pytest.mark.parametrize("word", ["0", "6", "one", "-1", "1.5"])
def test_a_denylist_of_anything_but_numbers_of_pictures_is_refused(folder: Path, word: str) -> None:
    truth, denylist = lines(folder, "truth.txt", *WORDS), lines(folder, "deny.txt", "2", word)
    message = rf"deny\.txt', line 2: '{word}' is no number of a picture, which is 1 to 5"
    with pytest.raises(ArgumentError, match=message):
        labelled_pictures(str(folder), truth, denylist)


def test_files_of_words_are_text_with_something_in_them(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(b"\xef\xbb\xbfred \r\n green\n")
    assert read_words(str(path)) == ["red", "green"]
    path.write_bytes(b"")
    with pytest.raises(ArgumentError, match="is empty, expected one word a line"):
        read_words(str(path))
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ArgumentError, match="expected a text file in UTF-8"):
        read_words(str(path))
    with pytest.raises(ArgumentError, match="cannot be read: No such file"):
        read_words(str(tmp_path / "missing"))
