from __future__ import annotations

import pytest

from delegraph.cli.answers.fitting_table import print_fitting_table
from delegraph.cli.answers.printing import console


@pytest.mark.parametrize(
    ("width", "headings"), [("40", "name a b c"), ("14", "name c"), ("9", "c")]
)
def test_columns_of_less_importance_go_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: str, headings: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    rows = [("n", "1", "22", "333333")]
    less = (("a", "b"), ("name",))
    print_fitting_table(console(), ("name", "a", "b", "c"), rows, less, right=("a",))
    assert capsys.readouterr().out.splitlines()[0].split() == headings.split()


def test_no_rows_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_fitting_table(console(), ("name",), [], (("name",),), right=())
    assert capsys.readouterr().out == ""
