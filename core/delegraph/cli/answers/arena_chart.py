"""A chart of the arena's use over time, drawn with block characters in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

_ROWS = 7
_WIDEST = 100
_BLOCKS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_ASCII = " .:#"


def arena_chart(in_use: Sequence[int], top: int, labels: tuple[str, str], width: int) -> list[str]:
    """Return the lines of a chart: nodes along x, bytes along y; columns show the maximum.

    Args:
        in_use: bytes in use while each node runs.
        top: bytes at the upper end of the scale.
        labels: texts of the upper end of the scale and of its middle.
        width: number of columns that the chart may take.
    """
    margin = max(map(len, labels))
    room = max(1, min(_WIDEST, width - margin - 2))
    heights = [_ROWS * value / max(top, 1) for value in _columns(in_use, room)]
    names = {_ROWS - 1: labels[0], _ROWS // 2: labels[1], 0: "0"}
    blocks = _BLOCKS if _can_print(_BLOCKS) else _ASCII
    lines = []
    for row in range(_ROWS - 1, -1, -1):
        cells = "".join(_cell(height - row, blocks) for height in heights)
        lines.append(f"{names.get(row, ''):>{margin}} |{cells}".rstrip())
    return lines


def _columns(in_use: Sequence[int], room: int) -> Iterator[int]:
    """Yield the height of each column of the chart, in bytes.

    A column covers several nodes, or a part of one node.

    Args:
        in_use: bytes in use while each node runs.
        room: number of columns.
    """
    count = len(in_use)
    columns = room if count > room else count * max(1, min(room // max(count, 1), 8))
    for i in range(columns):
        first, end = i * count // columns, -(-(i + 1) * count // columns)
        yield max(in_use[first:end])


def _cell(height: float, blocks: str) -> str:
    """Return the character of a cell that is filled to *height*, where 1 means full."""
    filled = min(max(height, 0.0), 1.0)
    level = round(filled * (len(blocks) - 1))
    return blocks[max(level, 1) if filled > 0 else 0]


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
