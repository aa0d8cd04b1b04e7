from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from delegraph.delegation.control_edges import Edges, moved_control_edges, parse_control_edges
from delegraph.graph.model import CONTROL_EDGES

VERSION = 1  # the one that TFLite writes

EDGES: list[Edges] = [[(0, 5), (-1, 63), (64, -64), (-65, 70_000)], [], [(127, 128)]]


def varint(value: int) -> bytes:
    """Definition: seven bits a byte, the lowest first; the highest bit says that more follow."""
    groups = [value % 128]
    while value := value // 128:
        groups.append(value % 128)
    return bytes([group + 128 for group in groups[:-1]] + groups[-1:])


def zigzag(value: int) -> bytes:
    """Definition: 0, -1, 1, -2, 2 are 0, 1, 2, 3, 4."""
    return varint(2 * value if value >= 0 else -2 * value - 1)


def stored(edges: Sequence[Edges], version: int = VERSION) -> bytes:
    lists = (
        varint(len(pairs)) + b"".join(zigzag(end) for pair in pairs for end in pair)
        for pairs in edges
    )
    return varint(version) + varint(len(edges)) + b"".join(lists)


def parsed(content: bytes, num_subgraphs: int = len(EDGES)) -> list[Edges] | None:
    return parse_control_edges({CONTROL_EDGES: np.frombuffer(content, np.uint8)}, num_subgraphs)


def test_edges_are_read_as_they_were_stored() -> None:
    assert parsed(stored(EDGES)) == EDGES
    assert parsed(stored([[]]), 1) == [[]]


def test_moved_edges_are_stored_as_others_are() -> None:
    same = [{end: end for pair in pairs for end in pair} for pairs in EDGES]
    assert moved_control_edges(EDGES, same) == stored([sorted(pairs) for pairs in EDGES])


def test_edges_within_what_is_one_operator_now_go() -> None:
    moved = moved_control_edges([[(0, 1), (0, 2), (1, 2), (3, 4)]], [{0: 5, 1: 5, 2: 0, 3: 1}])
    assert parsed(moved, 1) == [[(5, 0)]]


def test_a_model_without_the_metadata_has_no_edges_to_keep() -> None:
    assert parse_control_edges({}, 1) is None


def test_metadata_that_do_not_fit_are_ignored() -> None:
    content = stored(EDGES)
    assert parsed(stored(EDGES, VERSION + 1)) is None
    assert parsed(content, len(EDGES) + 1) is None
    assert parsed(content, len(EDGES) - 1) is None
    assert parsed(content + b"\0") is None


@pytest.mark.parametrize("length", range(len(stored(EDGES))))
def test_metadata_that_end_early_are_ignored(length: int) -> None:
    assert parsed(stored(EDGES)[:length]) is None


def test_a_count_beyond_the_data_is_not_believed() -> None:
    assert parsed(varint(VERSION) + varint(1) + varint(1 << 60), 1) is None
