from __future__ import annotations

import doctest

import pytest

from delegraph.cli.answers import table_layout
from delegraph.cli.answers.table_layout import Column, fitted

COLUMNS = [
    Column("partition", ("0", "1"), is_number=True),
    Column("runs on", ("numba_cpu, by default", "sin")),
    Column("operators", ("CONV_2D x8, FULLY_CONNECTED, MAX_POOL_2D", "SIN")),
    Column("bytes", ("1.6 MB", "4 B"), is_number=True),
]


def widths(width: int, *optional: tuple[str, ...]) -> dict[str, int]:
    return {column.heading: w for column, w in fitted(COLUMNS, width, optional)}


def test_cells_stay_whole_where_they_fit() -> None:
    assert widths(90) == {"partition": 9, "runs on": 21, "operators": 40, "bytes": 6}


@pytest.mark.parametrize("width", range(47, 90))
def test_a_table_fits_and_no_column_is_narrower_than_its_words(width: int) -> None:
    found = widths(width)
    assert sum(found.values()) + 2 * 3 <= width
    assert found["partition"] == 9
    assert found["runs on"] >= len("numba_cpu,")
    assert found["operators"] >= len("FULLY_CONNECTED,")


def test_columns_of_less_importance_go_first() -> None:
    assert list(widths(90, ("bytes",), ("runs on",))) == [c.heading for c in COLUMNS]
    assert list(widths(50, ("bytes",), ("runs on",))) == ["partition", "runs on", "operators"]
    assert list(widths(35, ("bytes",), ("runs on",))) == ["partition", "operators"]


def test_a_word_that_no_column_can_hold_is_shortened_in_the_middle() -> None:
    path = "/home/somebody/models/" + "folder/" * 9 + "model.tflite"
    (column, width), (number, _) = fitted(
        [Column("file", (path,)), Column("bytes", ("123456789",), is_number=True)], 40
    )
    assert (width, number.cells) == (29, ("123456789",))
    assert column.cells == ("/home/somebod.../model.tflite",)


def test_the_examples_are_right() -> None:
    assert doctest.testmod(table_layout).failed == 0
