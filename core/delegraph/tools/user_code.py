"""The place in a user's code that an error comes from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from traceback import walk_tb
from typing import NamedTuple

import delegraph
from delegraph.errors import DelegateError, ModelError, OperatorError, PluginLoadError, blamed

_FOREIGN = (os.path.dirname(delegraph.__file__), os.path.dirname(os.__file__))
"""Folders of Delegraph and of the standard library."""

_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")


class Place(NamedTuple):
    """A line of a file, and the function that contains this line."""

    path: str
    line: int
    function: str

    def __str__(self) -> str:
        inside = "" if self.function.startswith("<") else f" in {self.function}"
        return f"{_short(self.path)}:{self.line}{inside}"


def origin(error: BaseException) -> Place | None:
    """Return the line where a delegate author's code failed; None if no such line is known.

    An error about a model, which the code raised on purpose, has none.
    """
    *_, first = _with_causes(error)
    is_of_model = isinstance(first, ModelError | OperatorError)
    is_authors_fault = isinstance(error, DelegateError | PluginLoadError) or blamed(error)
    return last_place(error) if is_authors_fault and not is_of_model else None


def last_place(error: BaseException) -> Place | None:
    """Return the last line of a user's code that *error* went through; None if there is none.

    Code of installed packages does not count, except of packages that are installed as editable.
    """
    for each in reversed(list(_with_causes(error))):
        for frame, line in reversed(list(walk_tb(each.__traceback__))):
            path = frame.f_code.co_filename
            if is_authors(path):
                return Place(path, line, frame.f_code.co_name)
    return None


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, the first cause last."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def is_authors(path: str) -> bool:
    """Whether the file at *path* is code of neither Delegraph nor an installed package."""
    path = os.path.abspath(path)
    is_foreign = path.startswith(tuple(folder + os.sep for folder in _FOREIGN))
    return os.path.isfile(path) and not is_foreign and not _INSTALLED.search(path)


def _short(path: str) -> str:
    """Return a path relative to the working folder or to the home folder, if it is inside."""
    path = os.path.abspath(path)
    for folder, start in ((os.getcwd(), ""), (os.path.expanduser("~"), "~" + os.sep)):
        if path.startswith(folder.rstrip(os.sep) + os.sep):
            return start + os.path.relpath(path, folder)
    return path
