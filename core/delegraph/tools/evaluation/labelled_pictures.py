"""Pictures with their classes, from files of the official tool: a folder and lists of lines."""

from __future__ import annotations

import os

from delegraph.errors import ArgumentError
from delegraph.log import Logger
from delegraph.quantities import few_of, plural
from delegraph.tools.evaluation.picture_files import (
    PictureFile,
    chosen,
    picture_names,
)
from delegraph.tools.whole_file import read_whole

_log = Logger(__name__)


def labelled_pictures(
    folder: str, truth: str, denylist: str | None = None, num_images: int = 0
) -> list[PictureFile]:
    """Return the pictures of a folder, each with its label from the file *truth*.

    Args:
        folder: folder of the pictures, sorted by the bytes of their names. Other files are left
            out, with a warning: hidden ones, and those whose names do not end as a picture's do.
        truth: path of a file with one label per line; line i belongs to picture i. Or a table in
            CSV that has the names of all pictures and their labels.
        denylist: path of a file with one number per line, of pictures to leave out; the first
            picture is number 1.
        num_images: number of remaining pictures to use; 0 means all.

    Raises:
        ArgumentError: a file cannot be read, the numbers of lines and pictures differ, no picture
            has a number of the denylist, or no picture remains.
    """
    (names, others), words = picture_names(folder), read_words(truth)
    rows = (word.partition(",") for word in words)
    by_name = {name.strip('" '): label.strip('" ') for name, _, label in rows}
    if by_name.keys() >= set(names):
        words = [by_name[name] for name in names]
    besides = f", besides {plural(len(others), 'other file')}" if others else ""
    if len(names) != len(words):
        raise ArgumentError(
            f"{truth!r} has {plural(len(words), 'line')}, and {folder!r} "
            f"{plural(len(names), 'picture')} (the first is {names[0]!r}, the last {names[-1]!r})"
            f"{besides}; expected one line for each picture"
        )
    if others:
        _log.warning(
            "%r: %s left out, hidden or no picture by name: %s",
            folder,
            plural(len(others), "file"),
            few_of([*map(repr, others)], 3),
        )
    denied = set() if denylist is None else _read_numbers(denylist, len(names))
    positions = chosen(len(names), denied, num_images)
    return [PictureFile(os.path.join(folder, names[i]), words[i]) for i in positions]


def read_words(path: str) -> list[str]:
    """Return the lines of the text file *path*, without surrounding blanks.

    Raises:
        ArgumentError: the file cannot be read, is no text in UTF-8, or is empty.
    """
    try:
        lines = read_whole(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{path!r}: expected a text file in UTF-8") from error
    if not lines:
        raise ArgumentError(f"{path!r} is empty, expected one word a line")
    return [line.strip() for line in lines]


def _read_numbers(path: str, highest: int) -> set[int]:
    numbers = set()
    for line, word in enumerate(read_words(path), 1):
        if not word:
            continue
        if not word.isdecimal() or not 1 <= int(word) <= highest:
            raise ArgumentError(
                f"{path!r}, line {line}: {word!r} is no number of a picture, which is 1 to "
                f"{highest}"
            )
        numbers.add(int(word))
    return numbers
