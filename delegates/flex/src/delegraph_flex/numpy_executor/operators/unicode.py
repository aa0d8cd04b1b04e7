"""Conversions of text between encodings, and to and from code points."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.numpy_executor.operators.ragged import check_splits
from delegraph_flex.numpy_executor.operators.strings import each
from delegraph_flex.numpy_executor.registry import operator

Array = NDArray[Any]
_OUTPUT_CODECS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
_MAX_CODE_POINT = 0x10FFFF


def _codec(node: FlexNode) -> str:
    encoding = node.text("input_encoding")
    try:
        found = codecs.lookup(encoding)
    except LookupError:
        found = None
    if found is None or not getattr(found, "_is_text_encoding", True):
        raise Unsupported(f"encoding {encoding!r} is not known")
    return found.name


def _decoder(node: FlexNode, encoding: str) -> Callable[[bytes], Iterator[tuple[int, int]]]:
    """Return the function that returns the code points of bytes, each with its byte position."""
    errors = node.choice("errors", ("strict", "replace", "ignore"), "replace")
    replacement = node.int("replacement_char", 0xFFFD)
    control = node.bool("replace_control_characters", False)

    def decode(value: bytes) -> Iterator[tuple[int, int]]:
        for point, start in _decoded(value, encoding):
            is_control = control and 0 <= point <= 0x1F
            if point >= 0 and not is_control:
                yield point, start
            elif errors == "strict" and not is_control:
                raise ValueError(f"invalid formatting on input string {value!r}")
            elif errors == "replace" or is_control:
                yield replacement, start

    return decode


def _decoded(value: bytes, encoding: str) -> Iterator[tuple[int, int]]:
    """Yield the code points of *value* in *encoding*, each with its byte position.

    The code point is -1 for invalid bytes.
    """
    start = 0
    while start < len(value):
        try:
            text = value[start:].decode(encoding)
            bad = None
        except UnicodeDecodeError as error:
            text, bad = value[start : start + error.start].decode(encoding), error
        for character in text:
            yield ord(character), start
            start += len(character.encode(encoding))
        if bad is None:
            return
        yield -1, start
        start += bad.end - bad.start


@operator("UnicodeDecode", "UnicodeDecodeWithOffsets")
def decode(node: FlexNode) -> Step:
    """Function that decodes strings to row splits, code points and, if wanted, byte positions."""
    convert, count = _decoder(node, _codec(node)), 3 if node.op.endswith("Offsets") else 2
    dtype = node.type("Tsplits", DataType.INT64).dtype

    def run(x: Array) -> list[Array]:
        rows = [list(convert(value)) for value in np.asarray(x, object).reshape(-1)]
        splits = np.cumsum([0, *map(len, rows)])
        found = np.array([pair for row in rows for pair in row], np.int64).reshape(-1, 2)
        return [splits.astype(dtype), found[:, 0].astype(np.int32), found[:, 1].copy()][:count]

    return run


@operator("UnicodeEncode")
def encode(node: FlexNode) -> Step:
    """Return a function that encodes code points, divided by row splits, as strings."""
    codec = _OUTPUT_CODECS[node.choice("output_encoding", tuple(_OUTPUT_CODECS))]
    errors = node.choice("errors", ("strict", "replace", "ignore"), "replace")
    replacement = node.int("replacement_char", 0xFFFD)

    def text(points: list[int]) -> bytes:
        valid = [_checked(point, errors, replacement) for point in points]
        return "".join(chr(point) for point in valid if point >= 0).encode(codec)

    def run(points: Array, splits: Array) -> Array:
        check_splits(splits, len(points))
        bounds = splits.tolist()
        result = np.empty(len(bounds) - 1, object)
        for i, (start, end) in enumerate(pairwise(bounds)):
            result[i] = text(points[start:end].tolist())
        return result

    return run


def _checked(point: int, errors: str, replacement: int) -> int:
    """Return *point* if it is a valid code point, otherwise *replacement*, or -1 to drop it.

    *errors* is the node's attribute that decides this.
    """
    if 0 <= point <= _MAX_CODE_POINT and not 0xD800 <= point <= 0xDFFF:
        return point
    if errors == "strict":
        raise ValueError(f"code point {point} does not exist")
    return replacement if errors == "replace" else -1


@operator("UnicodeTranscode")
def transcode(node: FlexNode) -> Step:
    """Return a function that converts strings to another encoding."""
    convert = _decoder(node, _codec(node))
    codec = _OUTPUT_CODECS[node.choice("output_encoding", tuple(_OUTPUT_CODECS))]
    return each(lambda value: "".join(chr(point) for point, _ in convert(value)).encode(codec))


@operator("UnicodeScript")
def script(node: FlexNode) -> Step:
    """Function that returns the script of each code point, as ICU's number; -1 if unknown."""
    starts, numbers = _scripts()
    return lambda points: numbers[np.searchsorted(starts, points, "right")]


@cache
def _scripts() -> tuple[Array, Array]:
    """Return the starts of runs of code points with the same script, and the scripts' numbers."""
    text = files("delegraph_flex").joinpath("unicode_scripts.txt").read_text(encoding="utf-8")
    runs = [line.split() for line in text.splitlines() if not line.startswith("#")]
    starts = np.array([int(start, 16) for start, _ in runs], np.int32)
    return starts, np.array([-1, *(int(number) for _, number in runs)], np.int32)


@operator("WhitespaceTokenizeWithOffsets")
def whitespace_tokenize(node: FlexNode) -> Step:
    """Return a function that splits code points into words at blanks.

    The outputs are code points, splits, starts and limits of the words, and splits of the strings.

    Source:
        tensorflow_text/core/kernels/whitespace_tokenize_kernel.cc.
    """
    dtype = node.type("Tsplits", DataType.INT64).dtype

    def run(points: Array, splits: Array) -> list[Array]:
        check_splits(splits, len(points))
        bounds = splits.tolist()
        is_blank = np.array([chr(p).isspace() for p in points.tolist()], bool)
        is_blank &= ~np.isin(points, _NO_BLANKS)
        # First and last point of the word, and start of its string.
        words: list[tuple[int, int, int]] = []
        outer = [0]
        for start, end in pairwise(bounds):
            edges = np.flatnonzero(np.diff(np.r_[True, is_blank[start:end], True])) + start
            words += [(a, b, start) for a, b in edges.reshape(-1, 2).tolist()]
            outer.append(len(words))
        table = np.array(words, np.int64).reshape(-1, 3)
        return [
            points[~is_blank],
            np.cumsum([0, *(table[:, 1] - table[:, 0])]).astype(dtype),
            table[:, 0] - table[:, 2],
            table[:, 1] - table[:, 2],
            np.array(outer, dtype),
        ]

    return run


_NO_BLANKS = [0x1C, 0x1D, 0x1E, 0x1F]
"""Separators that Python counts as blanks, but Unicode does not."""
