from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from delegraph.cli.answers.diff import print_cause, print_difference, print_layers
from delegraph.cli.answers.diff_bisection import print_bisection
from delegraph.cli.answers.printing import console
from delegraph.cli.answers.table_layout import shortened
from delegraph.delegation.placement import NodePlacement
from delegraph.tools import Setup, diff, diff_layers
from delegraph.tools.differing.bisection import Outcome
from delegraph.tools.differing.cause import Cause
from delegraph.tools.differing.difference import OutputDifference
from delegraph.tools.differing.faulty_nodes import Bisection, Culprit
from delegraph.tools.differing.html_page import difference_page
from delegraph.tools.differing.layer_difference import LayerDifference, LayersDifference
from delegraph.tools.differing.metrics import tensor_difference
from delegraph.tools.differing.verdict import verdict_of
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


def test_strings_have_no_figures(capsys: pytest.CaptureFixture[str]) -> None:
    texts = (np.array([text], object) for text in (b"yes", b"no"))
    string = OutputDifference("y", "y", "string", "string", (tensor_difference(*texts, {}, {}),))
    found = diff(Setup(str(MODELS / "sines.tflite"), delegates=()), runs=1)
    print_difference(console(), replace(found, outputs=(string,)))
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("Outputs")
    assert lines[start + 2].split() == ["y", "string", "stored", "1", "of", "1", "(100.00", "%)"]
    assert lines[start + 3] == "  y: first difference at [0] (run 1: seed 0)"
    page = difference_page(replace(found, outputs=(string,)), verdict_of(found))
    assert "nan" not in page


def test_no_line_of_a_difference_is_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    model = tmp_path / f"{'long_' * 8}name.tflite"
    model.write_bytes((MODELS / "digits_float.tflite").read_bytes())
    other = Setup(str(MODELS / "digits_int8.tflite"), delegates=(), threads=2)
    print_difference(console(), diff(Setup(str(model), delegates=()), other, runs=1))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[:3] == ["test:", f"  {model.name}, no", "  delegates"]
    assert "reference: digits_int8.tflite, no delegates, 2 threads" in lines


def test_few_culprits_are_printed_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    setup = Setup("model.tflite")
    placed = tuple(NodePlacement(0, index, "ADD", delegate="sin") for index in range(9))
    wrong = Outcome("differs", "y: 1 of 1 elements")
    culprits = tuple(Culprit((node,), wrong, 1, is_smallest=True) for node in placed)
    print_bisection(console(), Bisection(setup, setup, placed, culprits))
    lines = capsys.readouterr().out.splitlines()
    first = "further off than the tolerance: node 0 (ADD); node 1 (ADD); node 2 (ADD); 6 more"
    assert " ".join(" ".join(lines[:2]).split()) == first
    assert lines[-1] == "  6 more, which --json has in full: nodes 3; 4; 5; 6; 7; 8"


def test_the_table_of_layers_decides_once_which_columns_it_has(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(MODELS / "digits_int8.tflite")
    found = diff_layers(
        Setup(model, delegates=()), Setup(model, delegates=(), numerics="reference")
    )
    asked = []
    given = LayersDifference.same_inputs_say_more.fget  # type: ignore[attr-defined]  # a property

    def counted(layers: LayersDifference) -> bool:
        asked.append(layers)
        return bool(given(layers))

    monkeypatch.setattr(LayersDifference, "same_inputs_say_more", property(counted))
    print_layers(console(), found, run="", worst_first=False)
    assert "CONV_2D" in capsys.readouterr().out
    assert len(asked) < 3 < len(found.shown())


def test_the_cause_shortens_a_long_name_of_a_tensor(capsys: pytest.CaptureFixture[str]) -> None:
    long = "model/" + ";".join(f"block_{i}/Conv2D" for i in range(20))
    equal = tensor_difference(np.float32([1]), np.float32([2]), {}, {})
    off = OutputDifference(long, long, "float32", "float32", (equal,), 1)
    layer = LayerDifference(0, 3, "ADD", 5, long, None, None, off, "", off, "")
    print_cause(console(), Cause("wrong node", layer))
    assert f"1 of 1 elements of '{shortened(long)}' differ" in " ".join(
        capsys.readouterr().out.split()
    )
    assert long in str(Cause("wrong node", layer))


@pytest.mark.parametrize("name", ["y", "a/long/name/of/a/tensor"])
@pytest.mark.parametrize(("width", "count"), [(80, 8), (70, 6), (60, 5)])
def test_the_width_alone_chooses_the_columns_of_layers(
    width: int,
    count: int,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    values = np.float32([1, 2]), np.float32([1.0000002, 2]), np.float32([1.0000005, 2])
    drift, same = (
        OutputDifference(name, name, "float32", "float32", (each,))
        for each in (tensor_difference(values[0], right, {}, {}) for right in values[1:])
    )
    op = "DEPTHWISE_CONV_2D"
    layer = LayerDifference(0, 123, op, 5, name, "numba_cpu", 0, drift, "", same, "")
    setup = Setup("model.tflite")
    found = LayersDifference(setup, setup, "alone", ("seed 0",), (layer,))
    print_layers(console(), found, run="", worst_first=False)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if op in line]
    assert (len(row.split()), len(row) <= width) == (count, True)


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


def test_a_search_of_the_nodes_that_are_taken_by_default_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    setup = Setup("sine.tflite", delegates=("add_sub",))
    rest = NodePlacement(0, 0, "SIN", "fast", is_by_default=True)
    print_bisection(console(), Bisection(setup, setup, (rest,)), has_tolerance=False)
    words = " ".join(capsys.readouterr().out.split())
    assert "profile with all nodes that fast takes by default test: " in words
