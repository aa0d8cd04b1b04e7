"""Requests and answers of the protocol have the model's names, types and shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from delegraph.errors import ArgumentError, PredictionError
from delegraph.scale.predictor import Predictor
from delegraph.scale.serving.tensors import GivenTensor, ServedSignature, served_signature

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"


def details(*shape: int, dtype: Any = np.float32) -> dict[str, Any]:
    sizes = np.array(shape, np.int32)
    return {"name": "t", "shape": abs(sizes), "shape_signature": sizes, "dtype": dtype, "index": 0}


def signature(inputs: dict[str, Any], outputs: dict[str, Any]) -> ServedSignature:
    return served_signature(inputs, outputs, 4)


def given(*shape: int, datatype: str = "FP32") -> GivenTensor:
    return GivenTensor(datatype, np.zeros(shape, np.float32))


def test_a_predictor_says_it_all() -> None:
    with Predictor(DIGITS, outputs={"digit": "scores"}) as predictor:
        found = served_signature(predictor.input_columns(), predictor.output_columns(), 8)
    assert found.has_rows
    assert [tensor.to_json() for tensor in found.inputs.values()] == [
        {"name": "image", "datatype": "INT8", "shape": [-1, 8, 8, 1]}
    ]
    assert [tensor.to_json() for tensor in found.outputs.values()] == [
        {"name": "scores", "datatype": "INT8", "shape": [-1, 10]}
    ]


@pytest.mark.parametrize(
    ("inputs", "outputs", "has_rows"),
    [
        ([(1, 3), (1,)], [(1, 2), (1, 4)], True),
        ([(-1, 3)], [(-1, 2)], True),
        ([(-1, 3)], [(1, 2)], True),
        ([(1, 3)], [(-1, 4)], False),  # as many detections as there are
        ([(1, 3)], [(7,)], False),
        ([(8, 3)], [(8, 2)], False),
        ([(1, 3), ()], [(1, 2)], False),
        ([(1, 3)], [()], False),
    ],
)
def test_rows_lie_along_a_first_dimension_of_one(
    inputs: list[Any], outputs: list[Any], has_rows: bool
) -> None:
    found = signature(
        {f"x{i}": details(*shape) for i, shape in enumerate(inputs)},
        {f"y{i}": details(*shape) for i, shape in enumerate(outputs)},
    )
    assert found.has_rows == has_rows
    first = -1 if has_rows else inputs[0][0]
    assert found.inputs["x0"].shape == (first, *inputs[0][1:])


@pytest.mark.parametrize(
    ("dtype", "datatype"),
    [
        (np.bool_, "BOOL"),
        (np.int8, "INT8"),
        (np.uint16, "UINT16"),
        (np.int64, "INT64"),
        (np.float16, "FP16"),
        (np.float64, "FP64"),
        (np.bytes_, "BYTES"),
    ],
)
def test_datatypes_have_the_names_of_the_protocol(dtype: Any, datatype: str) -> None:
    found = signature({"x": details(1, dtype=dtype)}, {"y": details(1)})
    assert found.inputs["x"].datatype == datatype


def test_what_the_protocol_does_not_have() -> None:
    with pytest.raises(ArgumentError, match="'x' is bfloat16, which the Open Inference Protocol"):
        signature({"x": details(1, dtype=ml_dtypes.bfloat16)}, {"y": details(1)})
    with pytest.raises(ArgumentError, match="'error' cannot be served: give it another name"):
        signature({"x": details(1)}, {"error": details(1)})


def test_rows_of_a_request() -> None:
    rows = signature({"x": details(1, 3)}, {"y": details(1, 2)})
    assert rows.columns({"x": given(2, 3)})["x"].shape == (2, 3)
    whole = signature({"x": details(8, -1)}, {"y": details(8)})
    assert whole.columns({"x": given(8, 5)})["x"].shape == (1, 8, 5)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({}, "input 'a' is missing; inputs are a, b"),
        ({"a": given(1, 3), "c": given(1)}, "no input 'c'; inputs are a, b"),
        ({"a": given(1, 3), "b": given(1, datatype="FP64")}, "input 'b' is FP64, expected FP32"),
        ({"a": given(1, 4), "b": given(1)}, r"'a' has shape \[1, 4\], expected \[-1, 3\]"),
        ({"a": given(3), "b": given(1)}, r"'a' has shape \[3\], expected \[-1, 3\]"),
        ({"a": given(2, 3), "b": given(3)}, "different numbers of rows: 'a' 2, 'b' 3"),
        ({"a": given(0, 3), "b": given(0)}, "a request of 0 rows, expected 1 to 4"),
        ({"a": given(5, 3), "b": given(5)}, "a request of 5 rows, expected 1 to 4"),
    ],
)
def test_requests_that_do_not_fit(tensors: dict[str, GivenTensor], message: str) -> None:
    two = signature({"a": details(1, 3), "b": details(1)}, {"y": details(1)})
    with pytest.raises(ArgumentError, match=message):
        two.columns(tensors)


def test_texts_are_texts() -> None:
    texts = signature({"x": details(1, dtype=np.bytes_)}, {"y": details(1)})
    assert texts.columns({"x": GivenTensor("BYTES", np.array(["a", b"b"], object))})
    with pytest.raises(ArgumentError, match="'x' is BYTES and holds bytes that are no text"):
        texts.columns({"x": GivenTensor("BYTES", np.array(["a", 3], object))})


def test_outputs_that_are_asked_for() -> None:
    two = signature({"x": details(1)}, {"y": details(1), "z": details(1)})
    assert two.wanted([]) == {"y": "y", "z": "z"}
    assert two.wanted(["z"]) == {"z": "z"}
    with pytest.raises(ArgumentError, match="no output 'w'; outputs are y, z"):
        two.wanted(["w"])


def test_names_of_tensors_are_names_of_inputs_and_outputs() -> None:
    described = signature(
        {"image": details(1, 3) | {"name": "image", "called_name": "input_1"}},
        {"scores": details(1) | {"name": "scores", "called_name": "Identity"}},
    )
    assert list(described.columns({"input_1": given(2, 3)})) == ["image"]
    assert described.wanted(["Identity"]) == {"Identity": "scores"}
    with pytest.raises(ArgumentError, match="'input_1' and 'image' are one input"):
        described.columns({"image": given(2, 3), "input_1": given(2, 3)})
    with pytest.raises(ArgumentError, match="no input 'input_2'; inputs are image"):
        described.columns({"input_2": given(2, 3)})


def test_outputs_have_the_shape_that_the_model_gives() -> None:
    rows = signature({"x": details(1)}, {"y": details(1, 2)})
    assert rows.tensors({"y": np.zeros((3, 2))})["y"].shape == (3, 2)
    whole = signature({"x": details(1)}, {"y": details(-1, 2)})
    assert whole.tensors({"y": np.zeros((1, 7, 2))})["y"].shape == (7, 2)


def test_rows_of_different_shapes_do_not_go_into_a_tensor() -> None:
    rows = signature({"x": details(1)}, {"y": details(1, -1)})
    column = np.empty(2, object)
    column[:] = [np.zeros(2), np.zeros(3)]
    with pytest.raises(PredictionError, match=r"\[2\], \[3\].*: send one row a request"):
        rows.tensors({"y": column})
    assert rows.tensors({"y": column[1:]})["y"].shape == (1, 3)
