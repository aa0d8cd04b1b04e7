from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.delegation.tolerance import Tolerance
from delegraph.testing import graph_model, one_op_model, tensor
from delegraph.tools import InputRequest, Setup, diff, diff_layers
from delegraph.tools.differing.difference_texts import unequal_elements
from delegraph.tools.differing.layer_difference import noise
from delegraph.tools.differing.numerics_profile import rounding
from delegraph.tools.differing.verdict import verdict_of
from support.faulty_delegate import Faulty, off_by
from support.layer_models import add, file, mul, setup_of


@pytest.fixture
def sine(tmp_path: Path) -> str:
    return file(tmp_path, one_op_model("SIN", [tensor((4,))], [tensor((4,), name="y")]))


def test_equal_outputs_are_the_same(chain: str) -> None:
    found = verdict_of(diff(setup_of(chain, "delegraph"), runs=3))
    assert (found.word, found.node) == ("same", None)
    assert found.text == "same: no element of an output differs in 3 runs"


@pytest.mark.parametrize(("off", "word"), [(1e-7, "within profile"), (0.5, "differs")])
def test_roundings_are_within_the_numerics_profile(sine: str, off: float, word: str) -> None:
    found = verdict_of(diff(setup_of(sine, "delegraph", Faulty("SIN", fault=off_by(off))), runs=2))
    assert found.word == word
    if word == "differs":
        assert found.text.startswith("differs: 2 of 8 elements of ")
        assert found.text.endswith("are off by more than the numerics profile, by up to 0.5")
    else:
        assert found.text.startswith("same within the numerics profile: ")


@pytest.mark.parametrize(("allowed", "word"), [(0.6, "within tolerance"), (0.4, "differs")])
def test_a_tolerance_decides_if_it_is_given(sine: str, allowed: float, word: str) -> None:
    wrong = setup_of(sine, "delegraph", Faulty("SIN", fault=off_by(0.5)))
    found = verdict_of(diff(wrong, runs=1, tolerance=Tolerance(absolute=allowed)))
    assert found.word == word
    assert "the tolerance" in found.text


def test_layers_tell_from_which_node_on_it_differs(wrong: Setup) -> None:
    layers = diff_layers(wrong, inner="alone", tolerance=rounding)
    found = verdict_of(diff(wrong, runs=1), layers)
    assert (found.word, found.node) == ("differs", 1)
    assert found.text.startswith("differs from node 1 (MUL) on: 1 of 4 elements of y are off by")
    assert found.text.endswith("on the reference's inputs node 1 (MUL) is the first that is off")


def test_a_partition_whose_nodes_were_not_compared_is_named_as_a_whole(wrong: Setup) -> None:
    layers = diff_layers(wrong, inner="boundaries", tolerance=rounding)
    place = f"partition 0 of {layers.layers[1].delegate} (nodes "
    text = verdict_of(diff(wrong, runs=1), layers).text
    assert text.startswith(f"differs from {place}")
    assert text.endswith("is the first that is off; --inner alone tells which node")


def test_a_node_that_was_computed_with_others_is_not_blamed_alone(wrong: Setup) -> None:
    layers = diff_layers(wrong, inner="exposed", tolerance=rounding)
    whole = f"partition 0 of {layers.layers[1].delegate}"
    assert verdict_of(diff(wrong, runs=1), layers).text.endswith(
        f"on the reference's inputs {whole} is off from node 1 (MUL) on; "
        "--inner alone tells which node"
    )


def test_a_partition_with_uncompared_tensors_is_named_once(wrong: Setup, tmp_path: Path) -> None:
    nodes = [
        add("x x", "a"),
        mul("a x", "other"),
        add("other x", "c"),
        add("c a", "z"),
        ("NEG", "a", "n"),
    ]
    other = file(tmp_path, graph_model(nodes, inputs="x", outputs="z"), "other.tflite")
    layers = diff_layers(wrong, setup_of(other, "delegraph"), inner="exposed", tolerance=rounding)
    text = verdict_of(diff(wrong, setup_of(other, "delegraph"), runs=1), layers).text
    assert text.count(f"partition 0 of {layers.layers[1].delegate}") == 2
    assert text.endswith("(nodes 0-3) is the first that is off; --inner alone tells which node")


def test_the_verdict_says_why_no_layer_was_compared(sine: str, tmp_path: Path) -> None:
    two = [("SIN", "i", "j"), ("ADD", "j j", "k")]
    other = file(tmp_path, graph_model(two, inputs="i", outputs="k"), "other.tflite")
    sides = setup_of(sine, "delegraph"), setup_of(other, "delegraph")
    text = verdict_of(diff(*sides, runs=1), diff_layers(*sides, tolerance=rounding)).text
    assert text.endswith(
        "no layer was computed from the reference's inputs: "
        "the reference has no tensor of this name"
    )


def test_an_output_that_one_side_lacks_differs(sine: str, tmp_path: Path) -> None:
    nodes = [("SIN", "x", "y"), ("COS", "x", "z")]
    two = file(tmp_path, graph_model(nodes, inputs="x", outputs="y z"), "two.tflite")
    found = verdict_of(diff(setup_of(two, "delegraph"), setup_of(sine, "delegraph"), runs=1))
    assert found.text == "differs: one side alone has z"


def test_empty_outputs_are_not_called_equal(tmp_path: Path) -> None:
    content = one_op_model("SIN", [tensor((0,))], [tensor((0,), name="y")])
    found = verdict_of(diff(setup_of(file(tmp_path, content), "delegraph"), runs=1))
    assert found.text.startswith("same, but all outputs are empty: ")


def test_labels_that_differ_are_counted_and_have_no_distance(tmp_path: Path) -> None:
    parts = {"x": tensor((4,), "INT32"), "y": tensor((4,), "INT32")}
    sides = [
        file(tmp_path, graph_model([(op, "x", "y")], inputs="x", outputs="y", tensors=parts), op)
        for op in ("NEG", "ABS")
    ]
    given = InputRequest(["x=1,-2,-3,0"])
    found = diff(*(setup_of(side, "delegraph") for side in sides), inputs=given)
    assert found.outputs[0].are_labels
    assert verdict_of(found).text == "differs: of y 1 of 4 (25.00 %) elements differ"
    assert unequal_elements(found.outputs[0]) == "1 of 4 (25.00 %)"
    layers = diff_layers(*(setup_of(side, "delegraph") for side in sides), inputs=given)
    (layer,) = layers.layers
    assert layer.drift is not None
    assert noise(layer.drift) == 0.25
