"""Operators on single strings: case, length, joining, substrings."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import Taken, require
from delegraph_flex.numpy_executor.indices import axis_of
from delegraph_flex.numpy_executor.registry import functions, operator

Strings = NDArray[np.object_]


def each(
    function: Callable[[bytes], Any], dtype: Any = object
) -> Callable[[Strings], NDArray[Any]]:
    """Return the function that applies *function* to every string of an array.

    The result is an array of *dtype*.
    """

    def run(x: Strings) -> NDArray[Any]:
        result = np.empty(np.shape(x), dtype)
        flat = result.reshape(-1)
        for i, value in enumerate(np.asarray(x, object).reshape(-1)):
            flat[i] = function(value)
        return result

    return run


_CASES: dict[str, tuple[Callable[[str], str], Callable[[bytes], bytes]]] = {
    "StringLower": (str.lower, bytes.lower),
    "StringUpper": (str.upper, bytes.upper),
}


@operator(*_CASES)
def convert_case(node: FlexNode) -> Step:
    """Return a function that changes the case of strings: of ASCII letters, or of all letters."""
    text, ascii = _CASES[node.op]
    if node.choice("encoding", ("", "utf-8"), "") == "":
        return each(ascii)
    return each(lambda value: text(value.decode("utf-8", "replace")).encode())


functions({"StringStrip": each(lambda value: value.strip(b" \t\n\v\f\r"))})


def _unit(node: FlexNode) -> str:
    return node.choice("unit", ("BYTE", "UTF8_CHAR"), "BYTE")


def character_starts(value: bytes) -> list[int]:
    """Return the byte positions in *value* where UTF-8 characters start."""
    return [i for i, byte in enumerate(value) if byte & 0xC0 != 0x80]


@operator("StringLength")
def length(node: FlexNode) -> Step:
    """Return a function that returns the lengths of strings, in bytes or UTF-8 characters."""
    if _unit(node) == "BYTE":
        return each(len, np.int32)
    return each(lambda value: len(character_starts(value)), np.int32)


def joiner(separator: bytes) -> Callable[[Collection[bytes]], bytes]:
    """Return the function that joins strings by *separator*.

    The function checks the memory of all its results together.
    """
    taken = Taken("joined text")

    def join(parts: Collection[bytes]) -> bytes:
        taken.add(sum(map(len, parts)) + len(separator) * len(parts))
        return separator.join(parts)

    return join


@operator("StringJoin")
def join(node: FlexNode) -> Step:
    """Function that joins strings of several arrays element by element; scalars are repeated."""
    separator = node.bytes("separator", b"")

    def run(*parts: Strings) -> Strings:
        shapes = {np.shape(part) for part in parts} - {()}
        if len(shapes) > 1:
            raise ValueError(f"inputs have shapes {sorted(shapes)}, expected equal ones or scalars")
        spread = np.broadcast_arrays(*[np.asarray(part, object) for part in parts])
        require(spread[0].shape, object)
        result = np.empty(spread[0].shape, object)
        flat = result.reshape(-1)
        joined = joiner(separator)
        for i, values in enumerate(zip(*(part.reshape(-1) for part in spread), strict=True)):
            flat[i] = joined(values)
        return result

    return run


@operator("ReduceJoin")
def reduce_join(node: FlexNode) -> Step:
    """Return a function that joins the strings along some dimensions into one string."""
    separator, keep = node.bytes("separator", b""), node.bool("keep_dims", False)

    def run(x: Strings, axes: NDArray[Any]) -> Strings:
        rank = np.ndim(x)
        order = [axis_of(axis, rank, "dimension") for axis in np.asarray(axes).reshape(-1).tolist()]
        if len(set(order)) < len(order):
            raise ValueError(f"dimensions {order} have one twice")
        kept = [i for i in range(rank) if i not in order]
        moved = x.transpose(kept + order[::-1])
        shape = tuple(x.shape[i] for i in kept)
        count = int(np.prod(shape, dtype=np.int64))
        rows = moved.reshape(count, -1) if count else np.empty((0, 0), object)
        result = np.empty(count, object)
        joined = joiner(separator)
        for i, row in enumerate(rows):
            result[i] = joined(row.tolist())
        if keep:
            shape = tuple(1 if i in order else x.shape[i] for i in range(rank))
        return result.reshape(shape)

    return run


@operator("Substr")
def substring(node: FlexNode) -> Step:
    """Function that returns substrings, by position and length in bytes or UTF-8 characters."""
    in_bytes = _unit(node) == "BYTE"

    def one(value: bytes, position: int, count: int) -> bytes:
        starts = range(len(value)) if in_bytes else character_starts(value)
        total = len(starts)
        if not -total <= position <= total:
            raise ValueError(f"pos {position} out of range for string {value!r}")
        first = position if position >= 0 else total + position
        last = min(first + max(count, 0), total)
        ends = [*starts, len(value)]
        return value[ends[first] : ends[last]]

    def run(x: Strings, position: NDArray[Any], count: NDArray[Any]) -> Strings:
        if np.shape(position) != np.shape(count):
            raise ValueError(f"pos is {np.shape(position)}, len {np.shape(count)}: not equal")
        spread = np.broadcast_arrays(np.asarray(x, object), position, count)
        result = np.empty(spread[0].shape, object)
        flat = result.reshape(-1)
        for i, (value, at, n) in enumerate(zip(*(s.reshape(-1) for s in spread), strict=True)):
            flat[i] = one(value, int(at), int(n))
        return result

    return run
