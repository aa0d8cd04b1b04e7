"""Control edges between operators, which the converter stores in a model's metadata.

Source:
    tflite/converter/experimental/remat/metadata_util.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.model import CONTROL_EDGES

VERSION = 1

Edges = list[tuple[int, int]]


def parse_control_edges(
    metadata: Mapping[str, NDArray[np.uint8]], num_subgraphs: int
) -> list[Edges] | None:
    """Return, for each subgraph, pairs of operator indices: the first must run before the second.

    The result is None if the model lacks this metadata. It is also None if the metadata does not
    fit the model; then it is ignored, as in TFLite. An empty list for a subgraph means that its
    side effects need no order.
    """
    raw = metadata.get(CONTROL_EDGES)
    if raw is None:
        return None
    reader = _Varints(bytes(raw))
    try:
        if reader.unsigned() != VERSION or reader.unsigned() != num_subgraphs:
            return None
        edges = [
            [(reader.signed(), reader.signed()) for _ in range(reader.unsigned())]
            for _ in range(num_subgraphs)
        ]
    except IndexError:
        return None
    return edges if reader.at_end else None


def moved_control_edges(edges: Sequence[Edges], moved: Sequence[Mapping[int, int]]) -> bytes:
    """Encode control edges after operators got new numbers, possibly several the same number.

    Args:
        edges: edges of each subgraph, as :func:`parse_control_edges` returns them.
        moved: new index of each operator, for each subgraph.
    """
    words = [_unsigned(VERSION), _unsigned(len(edges))]
    for pairs, new in zip(edges, moved, strict=True):
        kept = {(new[a], new[b]) for a, b in pairs if a in new and b in new and new[a] != new[b]}
        words.append(_unsigned(len(kept)))
        words += [_signed(index) for pair in sorted(kept) for index in pair]
    return b"".join(words)


def _unsigned(value: int) -> bytes:
    groups: Iterable[int] = (value >> shift for shift in range(0, value.bit_length() or 1, 7))
    *low, last = [group & 0x7F for group in groups]
    return bytes([*(group | 0x80 for group in low), last])


def _signed(value: int) -> bytes:
    return _unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


class _Varints:
    """Reads integers of variable length, 7 bits in a byte, the lowest bits first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def at_end(self) -> bool:
        return self._position == len(self._data)

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def signed(self) -> int:
        """Read an integer whose lowest bit is the sign (zig-zag encoding)."""
        value = self.unsigned()
        return -(value >> 1) - 1 if value & 1 else value >> 1
