from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.cli.answers.diff import print_difference
from delegraph.cli.answers.diff_bisection import print_bisection
from delegraph.cli.answers.printing import console
from delegraph.delegation.placement import NodePlacement
from delegraph.tools import Setup, diff
from delegraph.tools.differing.faulty_nodes import Bisection
from support.command import Command

MODELS = Path(__file__).parents[3] / "docs" / "demo" / "models"


def test_stored_and_real_values_are_told_apart_in_narrow_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    model = str(MODELS / "digits_int8.tflite")
    other = Setup(model, delegates=(), numerics="reference")
    print_difference(console(), diff(Setup(model, delegates=()), other, runs=2))
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if line.startswith("  digit ")]
    assert ["stored" in rows[0], "real" in rows[1]] == [True, True]


def test_nodes_without_a_delegate_name_their_host(delegraph: Command) -> None:
    pytest.importorskip("ai_edge_litert")
    words = ("diff", MODELS / "digits_int8.tflite", "--runs", "1", "--layers")
    assert (
        " ".join(delegraph(*words, "--runtime", "litert").out.split()).count("digit LiteRT ") == 1
    )
    assert " ".join(delegraph(*words, "-d", "none").out.split()).count("digit Delegraph ") == 1


@pytest.mark.parametrize(
    ("nodes", "verdict", "tried"),
    [
        ((), "nothing to search: no delegate has a node", "0 nodes with delegates, 0 probes"),
        (
            (("SIN", "sin", False), ("ADD", "numba_cpu", True), ("MUL", "numba_cpu", True)),
            "right: outputs are within the tolerance with all nodes that delegates take",
            "3 nodes with delegates (2 of numba_cpu, by default), 0 probes",
        ),
    ],
)
def test_a_bisection_says_whose_nodes_it_tried(
    nodes: tuple[tuple[str, str, bool], ...],
    verdict: str,
    tried: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    setup = Setup("model.tflite")
    placed = tuple(
        NodePlacement(0, index, op, delegate=name, is_by_default=by_default)
        for index, (op, name, by_default) in enumerate(nodes)
    )
    print_bisection(console(), Bisection(setup, setup, placed, (), (), "", None, True, ()))
    printed = capsys.readouterr().out.splitlines()
    assert (printed[0], printed[-1]) == (verdict, tried)
