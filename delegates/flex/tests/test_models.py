"""Small converted models, against what TensorFlow 2.18.1's interpreter made of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from delegraph import Interpreter
from flex_comparison import difference
from packed_arrays import load, unpack

FOLDER = Path(__file__).parent / "models"
MODELS = sorted(path.stem for path in FOLDER.glob("*.tflite"))
HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
RUNS = [
    (name, executor) for name in MODELS for executor in load(FOLDER / f"{name}.npz")[0]["executors"]
]


@pytest.mark.parametrize(("name", "executor"), RUNS)
def test_model_gives_what_tensorflow_gives(name: str, executor: str) -> None:
    if executor == "tensorflow" and not HAS_TENSORFLOW:
        pytest.skip("TensorFlow is not installed")
    index, data = load(FOLDER / f"{name}.npz")
    options: dict[str, Any] = {"executor": executor}
    # Two interpreters, call by call: the state of one must not show in the other.
    runners = [
        Interpreter(
            str(FOLDER / f"{name}.tflite"), delegates={"flex": options}
        ).get_signature_runner()
        for _ in range(2)
    ]
    for names, inputs, output_names, expected in index["steps"]:
        for runner in runners:
            outputs = runner(**dict(zip(names, unpack(inputs, data), strict=True)))
            for output, right in zip(output_names, unpack(expected, data), strict=True):
                words = difference(outputs[output], right, index["tolerance"])
                assert not words, f"{output} {words}"


def test_models_are_small() -> None:
    assert MODELS
    assert all((FOLDER / f"{name}.tflite").stat().st_size < 20_000 for name in MODELS)
