from __future__ import annotations

from typing import Any

import pytest

from delegraph.graph.loader import parse_model
from delegraph.graph.metadata import ModelMetadata, TensorMetadata
from delegraph.schema.options import SplitOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from delegraph.tools.tensor_names import called_name, input_names, output_names, with_names
from support.signatures import two_signatures


def entry(index: int, name: str) -> dict[str, Any]:
    return {"index": index, "name": name}


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Identity", "NEG"),
        ("Identity_1", "NEG"),
        ("StatefulPartitionedCall:0", "NEG"),
        ("model/Identity_12", "NEG"),
        ("", "NEG"),
        ("scores", "scores"),
        ("IdentityOfPerson", "IdentityOfPerson"),
    ],
)
def test_a_name_that_says_nothing_gives_way_to_the_operator(name: str, title: str) -> None:
    model = parse_model(one_op_model("NEG", [tensor((1,))], [tensor((1,))]))
    assert output_names(model, ModelMetadata(), [entry(1, name)]) == [title]


def test_the_metadata_names_an_output_before_its_tensor() -> None:
    model = parse_model(one_op_model("NEG", [tensor((1,))], [tensor((1,))]))
    said = ModelMetadata(outputs=(TensorMetadata(1, name="probability"),))
    assert output_names(model, said, [entry(1, "t1")]) == ["probability"]


def test_results_of_one_operator_are_numbered_and_equal_titles_told_apart() -> None:
    axis, outputs = constant(0, "INT32"), [tensor((1,)), tensor((1,))]
    content = one_op_model("SPLIT", [axis, tensor((2,))], outputs, SplitOptions(num_splits=2))
    details = [entry(2, "Identity"), entry(3, "Identity_1")]
    titles = output_names(parse_model(content), ModelMetadata(), details)
    assert titles == ["SPLIT:0", "SPLIT:1"]
    model = parse_model(
        graph_model([("NEG", "x", "a"), ("NEG", "x", "b")], inputs="x", outputs="a b")
    )
    details = [entry(1, "Identity"), entry(2, "Identity_1")]
    titles = output_names(model, ModelMetadata(), details)
    assert titles == ["NEG (tensor 1)", "NEG (tensor 2)"]


def test_a_tensor_that_is_an_output_twice_has_two_names() -> None:
    model = parse_model(one_op_model("NEG", [tensor((1,))], [tensor((1,))]))
    names = output_names(model, ModelMetadata(), [entry(1, "y"), entry(1, "y")])
    assert names == ["y (number 0)", "y (number 1)"]


def test_a_signature_names_the_tensors_of_the_whole_model() -> None:
    model = parse_model(two_signatures())
    first = next(s for s in model.signatures if s.subgraph_index == 0)
    (name, index), *_ = first.outputs.items()
    assert output_names(model, ModelMetadata(), [entry(index, "Identity")]) == [name]
    (name, index), *_ = first.inputs.items()
    assert input_names(model, ModelMetadata(), [entry(index, "x")]) == [name]


def test_an_input_is_named_by_metadata_or_its_tensor_or_its_position() -> None:
    model = parse_model(one_op_model("NEG", [tensor((1,))], [tensor((1,))]))
    said = ModelMetadata(inputs=(TensorMetadata(0, name="image"),))
    assert input_names(model, said, [entry(0, "t0")]) == ["image"]
    assert input_names(model, ModelMetadata(), [entry(0, "t0")]) == ["t0"]
    assert input_names(model, ModelMetadata(), [entry(0, "")]) == ["input_0"]


def test_a_named_tensor_still_tells_its_name_in_the_model() -> None:
    (named,) = with_names([entry(0, "Identity")], ["scores"])
    assert (named["name"], called_name(named)) == ("scores", "Identity")
    assert called_name(entry(0, "Identity")) == "Identity"
