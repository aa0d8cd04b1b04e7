from __future__ import annotations

import re

import pytest

from delegraph.cli.answers.table_layout import Column, fitted, shortened_names

COLUMNS = [
    Column("partition", ("0", "1"), is_number=True),
    Column("runs on", ("numba_cpu, by default", "sin")),
    Column("operators", ("CONV_2D x8, FULLY_CONNECTED, MAX_POOL_2D", "SIN")),
    Column("bytes", ("1.6 MB", "4 B"), is_number=True),
]


def widths(width: int, *optional: tuple[str, ...]) -> dict[str, int]:
    layout = fitted(COLUMNS, width, optional)
    assert layout is not None
    return {c.heading: w for c, w in zip(layout.columns, layout.widths, strict=True)}


def test_cells_stay_whole_where_they_fit() -> None:
    assert widths(90) == {"partition": 9, "runs on": 21, "operators": 40, "bytes": 6}


@pytest.mark.parametrize("width", range(44, 90))
def test_a_table_fits_and_no_column_is_narrower_than_its_words(width: int) -> None:
    found = widths(width)
    assert sum(found.values()) + 3 <= width
    assert found["partition"] == 9
    assert found["runs on"] >= len("numba_cpu,")
    assert found["operators"] >= len("FULLY_CONNECTED,")


def test_columns_of_less_importance_go_first() -> None:
    assert list(widths(90, ("bytes",), ("runs on",))) == [c.heading for c in COLUMNS]
    assert list(widths(50, ("bytes",), ("runs on",))) == ["partition", "runs on", "operators"]
    assert list(widths(35, ("bytes",), ("runs on",))) == ["partition", "operators"]


def test_a_word_that_no_column_can_hold_is_shortened_in_the_middle() -> None:
    path = "/home/somebody/models/" + "folder/" * 9 + "model.tflite"
    layout = fitted([Column("file", (path,)), Column("bytes", ("123456789",), is_number=True)], 40)
    assert layout is not None
    assert (layout.widths, layout.gap) == ((30, 9), 1)
    assert [c.cells for c in layout.columns] == [
        ("/home/somebody.../model.tflite",),
        ("123456789",),
    ]


def test_numbers_that_no_line_holds_have_no_layout() -> None:
    assert fitted([Column(str(i), ("123456789",), is_number=True) for i in range(5)], 40) is None


def test_long_names_keep_the_part_in_which_they_differ() -> None:
    begin, end = "network/with/a/long/beginning/block_", "/project/convolution/Conv2D"
    names = [f"{begin}{number}{end}:{number}" for number in range(1, 9)]
    shown = shortened_names([*names, "input"], 24)
    assert len({re.sub(":.*", "", name) for name in shown}) == 9
    assert all(len(name) <= 24 and name.endswith(f"D:{i}") for i, name in enumerate(shown[:-1], 1))
    assert shown[-1] == "input"


@pytest.mark.parametrize("names", [["", ""], ["", "", "y"], ["same_long_name"] * 3])
@pytest.mark.parametrize("limit", [0, 3, 5, 7])
def test_names_that_are_empty_or_equal_are_shortened_alike(names: list[str], limit: int) -> None:
    shown = shortened_names(names, limit)
    assert len(set(shown)) == len(set(names))


REASONS = [
    Column("count", ("17",), is_number=True),
    Column("out", ("546.4 kB",), is_number=True),
    Column("operators", ("RESHAPE x13, CONCATENATION x2, TFLite_Detection_PostProcess",)),
    Column("reason", ("it is not compiled for the accelerator",), is_sentence=True),
]


@pytest.mark.parametrize("width", [54, 58, 64, 78])
def test_a_sentence_keeps_its_width_where_other_columns_shrink_or_go(width: int) -> None:
    layout = fitted(REASONS, width, (("out",),))
    assert layout is not None
    assert layout.widths[-1] >= 23  # of 24, what its longest line needs
    assert sum(layout.widths) + layout.gap * (len(layout.widths) - 1) <= width


def test_a_shortened_list_of_names_keeps_its_bracket() -> None:
    names = [f"[network/block/expanded_conv_{i}/project/weights/bias]:{i}" for i in range(4)]
    assert all(name.startswith("[") for name in shortened_names(names, 28))
