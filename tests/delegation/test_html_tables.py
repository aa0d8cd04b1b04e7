from __future__ import annotations

from html.parser import HTMLParser

import pytest

from delegraph.delegation.html_tables import MOST_ROWS, html_table
from delegraph.delegation.placement import NodePlacement, Placement
from delegraph.delegation.rejections import Rejection


def test_numbers_are_on_the_right_and_short() -> None:
    assert html_table("<b>", ["x"], [[1.23456789], ["a"], [None], [True]]) == (
        '<p>&lt;b&gt;</p><table><thead><tr><th style="text-align:left">x</th></tr></thead><tbody>'
        '<tr><td style="text-align:right">1.2346</td></tr>'
        '<tr><td style="text-align:left">a</td></tr>'
        '<tr><td style="text-align:left"></td></tr>'
        '<tr><td style="text-align:left">True</td></tr></tbody></table>'
    )


def test_no_table_without_rows() -> None:
    assert html_table("nothing", ["x"], []) == "<p>nothing</p>"


def test_of_many_rows_the_first_are_shown() -> None:
    shown = html_table("many", ["x"], ([i] for i in range(MOST_ROWS + 5)))
    assert shown.count("<tr>") == 1 + MOST_ROWS
    assert shown.endswith("<p>and 5 more</p>")


@pytest.mark.parametrize("text", ["<script>a()</script>", "\"'><img src=x>", "&lt;", "a\x1b\u202e"])
def test_any_text_is_text(text: str) -> None:
    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.found: set[str] = set()

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.found.add(tag)

    tags = Tags()
    shown = html_table(text, [text], [[text]])
    tags.feed(shown)
    assert tags.found <= {"p", "table", "thead", "tbody", "tr", "th", "td"}
    assert shown.isprintable()


def test_a_placement_shows_who_runs_each_node() -> None:
    node = NodePlacement(0, 1, "ADD", rejections={"sin": Rejection("op", actual="ADD")}, name="<y>")
    shown = Placement((node,), (), ("sin",))._repr_html_()
    assert "1 node: sin takes none" in shown
    for cell in ("ADD", "&lt;y&gt;", "sin: op: is ADD"):
        assert f">{cell}</td>" in shown
