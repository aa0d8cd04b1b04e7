"""Operators that split strings into the parts of a sparse matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.registry import operator
from delegraph_flex.numpy_executor.sparse_parts import of_rows

Strings = NDArray[np.object_]


@operator("StringSplit")
def split_at_any(node: FlexNode) -> Step:
    """Return a function that splits strings at any of several bytes: indices, values, shape."""
    skip_empty = node.bool("skip_empty", True)

    def parts(value: bytes, delimiters: bytes) -> Iterator[bytes]:
        if not delimiters or not value:
            yield from (value[i : i + 1] for i in range(len(value)))
            return
        start = 0
        for i, byte in enumerate(value):
            if byte in delimiters:
                yield value[start:i]
                start = i + 1
        yield value[start:]

    def run(x: Strings, delimiter: NDArray[Any]) -> list[NDArray[Any]]:
        found = [list(parts(value, delimiter.item())) for value in _vector(x)]
        return of_rows([[p for p in row if p or not skip_empty] for row in found], x.shape, object)

    return run


@operator("StringSplitV2")
def split(node: FlexNode) -> Step:
    """Return a function that splits strings at separators or blanks: indices, values, shape."""
    most = node.int("maxsplit", -1)

    def run(x: Strings, separator: NDArray[Any]) -> list[NDArray[Any]]:
        sep = separator.item()
        if sep:
            return of_rows([value.split(sep, most) for value in _vector(x)], x.shape, object)
        return of_rows([_at_blanks(value, most) for value in _vector(x)], x.shape, object)

    return run


def _at_blanks(value: bytes, most: int) -> list[bytes]:
    """Return the parts of *value* between runs of blanks, split at most *most* times.

    The remainder is one part.
    """
    if most == 0:
        return [value]
    parts = value.split(None, most)
    return [*parts, b""] if len(parts) == most > 0 else parts


def _vector(x: Strings) -> Sequence[bytes]:
    if np.ndim(x) != 1:
        raise ValueError(f"input has {np.ndim(x)} dimensions, expected 1")
    values: list[bytes] = x.tolist()
    return values
