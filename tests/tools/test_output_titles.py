from __future__ import annotations

from typing import Any

import pytest

from delegraph.graph.loader import parse_model
from delegraph.graph.metadata import ModelMetadata, TensorMetadata
from delegraph.schema.options import SplitOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from delegraph.tools.output_titles import output_titles
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
    assert output_titles(model, None, [entry(1, name)], ModelMetadata()) == [title]


def test_the_metadata_names_an_output_before_its_tensor() -> None:
    model = parse_model(one_op_model("NEG", [tensor((1,))], [tensor((1,))]))
    said = ModelMetadata(outputs=(TensorMetadata(1, name="probability"),))
    assert output_titles(model, None, [entry(1, "t1")], said) == ["probability"]


def test_results_of_one_operator_are_numbered_and_equal_titles_told_apart() -> None:
    axis, outputs = constant(0, "INT32"), [tensor((1,)), tensor((1,))]
    content = one_op_model("SPLIT", [axis, tensor((2,))], outputs, SplitOptions(num_splits=2))
    details = [entry(2, "Identity"), entry(3, "Identity_1")]
    titles = output_titles(parse_model(content), None, details, ModelMetadata())
    assert titles == ["SPLIT:0", "SPLIT:1"]
    model = parse_model(
        graph_model([("NEG", "x", "a"), ("NEG", "x", "b")], inputs="x", outputs="a b")
    )
    details = [entry(1, "Identity"), entry(2, "Identity_1")]
    titles = output_titles(model, None, details, ModelMetadata())
    assert titles == ["NEG (tensor 1)", "NEG (tensor 2)"]


def test_a_signature_names_its_outputs() -> None:
    model = parse_model(two_signatures())
    for signature in model.signatures:
        found = [entry(index, name) for name, index in signature.outputs.items()]
        titles = output_titles(model, signature.key, found, ModelMetadata())
        assert titles == list(signature.outputs)
    first = next(s for s in model.signatures if s.subgraph_index == 0)
    (name, index), *_ = first.outputs.items()
    assert output_titles(model, None, [entry(index, "Identity")], ModelMetadata()) == [name]
