"""Checks of an interpreter's arguments, with the official texts where there are such."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from math import inf

from delegraph.delegation.num_threads import limited_num_threads
from delegraph.errors import ArgumentError
from delegraph.graph.loader import load_model, parse_model
from delegraph.graph.model import Model
from delegraph.operators.tensor import Tensor

_INT_MAX = 2**31 - 1


def model_of(
    path: str | os.PathLike[str] | None, content: bytes | None, table_limit: int | None = None
) -> Model:
    """Return the model of a file, or of bytes; just one of them is given.

    Raises:
        ArgumentError: both or neither, no such file, or a wrong limit.
        MalformedModelError: a damaged model.
    """
    check_count("table_limit", table_limit)
    if path and content:
        raise ArgumentError("Can't both provide `model_path` and `model_content`")
    if path:
        return load_model(os.fspath(path), table_limit)
    if content:
        return parse_model(content, table_limit)
    raise ArgumentError("`model_path` or `model_content` must be specified.")


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Reject a value unless it is one of *choices*.

    Raises:
        ArgumentError: another value.
    """
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ArgumentError(f"Unrecognized passed in {name}: {value!r}; it is one of {known}")


def checked_num_threads(num_threads: int | None) -> int | None:
    """Return a number of threads, or with a warning the most that make sense; None stays None.

    Raises:
        ArgumentError: no int, or less than 1, or more than a C ``int`` holds.
    """
    if num_threads is None:
        return None
    if not isinstance(num_threads, int) or isinstance(num_threads, bool):
        raise ArgumentError("type of num_threads should be int")
    if num_threads < 1:
        raise ArgumentError("num_threads should >= 1")
    if num_threads > _INT_MAX:
        raise ArgumentError(f"num_threads should <= {_INT_MAX}")
    return limited_num_threads(num_threads)


def check_count(name: str, value: object) -> None:
    """Reject a limit unless it is None or an int of at least 0.

    Raises:
        ArgumentError: another value.
    """
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ArgumentError(f"{name} is an int of at least 0, not {value!r}")


def check_time_limit(seconds: float | None) -> None:
    """Reject a time limit unless it is None or a number of seconds greater than 0.

    Raises:
        ArgumentError: another value.
    """
    if seconds is None:
        return
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not (is_number and 0 < seconds < inf):
        raise ArgumentError(f"time_limit is a positive number of seconds, not {seconds!r}")


def tensor_at(tensors: Sequence[Tensor], index: int) -> Tensor:
    """Return a tensor by its index, which any integer type may give.

    Raises:
        ArgumentError: no integer, or no tensor has it.
    """
    try:
        position = operator.index(index)
    except TypeError:
        raise ArgumentError(f"a tensor index is an int, not {index!r}") from None
    if not 0 <= position < len(tensors):
        raise ArgumentError(
            f"Invalid tensor index {position} exceeds max tensor index {len(tensors) - 1}"
        )
    return tensors[position]
