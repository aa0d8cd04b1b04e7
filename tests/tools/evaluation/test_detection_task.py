from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from delegraph import graph
from delegraph.errors import ArgumentError
from delegraph.graph import load_model
from delegraph.schema.enums import BuiltinOperator
from delegraph.schema.tables import Buffer, Model, Operator, OperatorCode, SubGraph, Tensor
from delegraph.schema.writer import write_model
from delegraph.tools import PictureFile, preset
from delegraph.tools.evaluation.detection_task import DetectionTask, made_by_models
from support.tensor_details import details


def model(folder: Path, name: str, made: tuple[int, ...]) -> graph.Model:
    """Return a model whose outputs 1, 2, 3 and 4 one operator makes, in the order of *made*."""
    custom = OperatorCode(
        deprecated_builtin_code=32,
        builtin_code=BuiltinOperator.CUSTOM,
        custom_code="TFLite_Detection_PostProcess",
    )
    subgraph = SubGraph(
        tensors=tuple(Tensor(shape=(1,)) for _ in range(5)),
        inputs=(0,),
        outputs=(1, 2, 3, 4),
        operators=(Operator(inputs=(0,), outputs=made),),
    )
    content = write_model(
        Model(version=3, operator_codes=(custom,), subgraphs=(subgraph,), buffers=(Buffer(),))
    )
    (folder / name).write_bytes(content)
    return load_model(folder / name)


SHAPES = [(1, 2), (1, 2, 4), (1,), (1, 2)]
OUTPUTS = [
    details(np.float32, *shape, name=f"tensor {index}", index=index)
    for index, shape in enumerate(SHAPES, 1)
]
PICTURE = details(np.float32, 1, 8, 8, 3)


def test_the_order_is_that_of_the_operator_of_the_model(tmp_path: Path) -> None:
    made = made_by_models([model(tmp_path, "a.tflite", (2, 4, 1, 3))])
    task = DetectionTask(preset("tflite"), made=made)
    values = [
        np.array([[0.5, 0.25]], np.float32),
        np.zeros((1, 2, 4), np.float32),
        np.array([2.0], np.float32),
        np.array([[7.0, 8.0]], np.float32),
    ]
    row = task.judge(PictureFile("a.jpg"), list(zip(OUTPUTS, values, strict=True)))
    assert row["classes"] == [8, 9]
    assert row["scores"] == [0.5, 0.25]


def test_two_models_that_differ_in_the_order_alone_are_refused(tmp_path: Path) -> None:
    first = model(tmp_path, "a.tflite", (1, 2, 3, 4))
    made_by_models([first, model(tmp_path, "b.tflite", (1, 2, 3, 4))])
    with pytest.raises(ArgumentError, match=r"c\.tflite' has its outputs in another order"):
        made_by_models([first, model(tmp_path, "c.tflite", (2, 1, 3, 4))])


def test_a_model_with_another_input_is_refused() -> None:
    task = DetectionTask(preset("tflite"))
    with pytest.raises(ArgumentError, match="the model has 2 inputs; a detector has one"):
        task.require_model([PICTURE, PICTURE], OUTPUTS)
    with pytest.raises(ArgumentError, match=r"takes no picture: expected \[1, H, W, 3\]"):
        task.require_model([details(np.float32, 1, 8, 8, 2)], OUTPUTS)


def test_outputs_that_are_not_clear_are_refused_before_anything_runs() -> None:
    with pytest.raises(ArgumentError, match="is not clear"):
        DetectionTask(preset("tflite")).require_model([PICTURE], OUTPUTS)
    named = ("scores", "boxes", "count", "classes")
    DetectionTask(preset("tflite"), outputs=named).require_model([PICTURE], OUTPUTS)


def test_a_found_class_without_a_label_is_refused() -> None:
    named = ("scores", "boxes", "count", "classes")
    task = DetectionTask(preset("tflite"), labels=("background", "cat"), outputs=named)
    values = [[[0.5]], [[[0, 0, 1, 1]]], [1.0], [[7.0]]]
    outputs = list(zip(OUTPUTS, map(np.float32, values), strict=True))
    told = r"a\.jpg: the model found class 8 \(its own, 7, and the class offset 1\), and the 2 lab"
    with pytest.raises(ArgumentError, match=told):
        task.judge(PictureFile("a.jpg"), outputs)
