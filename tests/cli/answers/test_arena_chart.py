from __future__ import annotations

import pytest

from delegraph.cli.answers.arena_chart import arena_chart


def test_heights_are_in_proportion_and_small_values_are_seen() -> None:
    lines = arena_chart([8, 4, 1, 0], 8, ("8 B", "4 B"), 9)
    columns = list(zip(*(line.ljust(9)[5:] for line in lines), strict=True))
    assert ["".join(column[::-1]).count("\u2588") for column in columns] == [7, 3, 0, 0]
    assert columns[2][-1] not in " \u2588"
    assert columns[3][-1] == " "
    assert [line.split("|")[0] for line in lines] == [
        "8 B ",
        "    ",
        "    ",
        "4 B ",
        "    ",
        "    ",
        "  0 ",
    ]


@pytest.mark.parametrize("nodes", [1, 20, 5000])
def test_a_chart_fits_the_width_and_keeps_the_peak(nodes: int) -> None:
    in_use = [1] * nodes
    in_use[nodes // 2] = 100
    lines = arena_chart(in_use, 100, ("100 B", "50 B"), 40)
    assert max(map(len, lines)) <= 40
    assert "\u2588" in lines[0]
