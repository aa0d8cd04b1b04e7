"""Control edges between operators, which the converter stores in a model's metadata.

Source:
    tflite/converter/experimental/remat/metadata_util.cc.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

METADATA_NAME = "model_control_dependencies"
VERSION = 1

Edges = list[tuple[int, int]]


def parse_control_edges(
    metadata: Mapping[str, NDArray[np.uint8]], num_subgraphs: int
) -> list[Edges] | None:
    """Return, for each subgraph, pairs of operator indices: the first must run before the second.

    None when the model has no such metadata, or one that does not fit it, which is ignored as in
    TFLite. An empty list for a subgraph is not the same as None: it says that side effects need no
    order.
    """
    raw = metadata.get(METADATA_NAME)
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


class _Varints:
    """Base-128 integers, least significant group first; ``IndexError`` past the end."""

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
        """An integer whose lowest bit is its sign (zig-zag)."""
        value = self.unsigned()
        return -(value >> 1) - 1 if value & 1 else value >> 1
