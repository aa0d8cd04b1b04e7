from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delegraph.schema import tables
from delegraph.schema.reader import read_model
from delegraph.testing import one_op_model, tensor
from delegraph.tools.shrinking import shrunk, with_output_shapes


@dataclass(frozen=True, eq=False)
class FailingModel:
    """A model of NEG with its input."""

    records: tables.Model
    steps: tuple[tuple[NDArray[np.float32], ...], ...]
    reference: tables.Model | None = None


def test_shorter_axes_have_their_lengths_in_the_signature_and_unknown_ones_stay() -> None:
    like = tensor((1, 4, 6), shape_signature=(-1, 4, 6))
    records = read_model(np.frombuffer(one_op_model("NEG", [like], [like]), np.uint8))
    case = FailingModel(records, ((np.ones((1, 4, 6), np.float32),),))
    found = shrunk(case, lambda other: True)
    (main,) = found.records.subgraphs or ()
    shapes = {(t.shape, t.shape_signature) for t in main.tensors or ()}
    assert shapes == {((1, 1, 1), (-1, 1, 1))}


def test_an_element_wise_operator_is_not_made_broadcasting() -> None:
    x, y, z = (tensor((4, 6)) for _ in range(3))
    records = read_model(np.frombuffer(one_op_model("ADD", [x, y], [z]), np.uint8))
    values = np.ones((4, 6), np.float32)
    found = shrunk(
        FailingModel(records, ((values, values),)), lambda other: (4, 6) in shapes(other)
    )
    assert len(shapes(found)) == 1


def test_outputs_get_the_shapes_that_they_have() -> None:
    records = read_model(
        np.frombuffer(one_op_model("NEG", [tensor((2, 3))], [tensor((1, 1))]), np.uint8)
    )
    case = FailingModel(records, ((np.ones((2, 3), np.float32),),))
    assert shapes(with_output_shapes(case, [(2, 3)])) == {(2, 3)}


def shapes(case: FailingModel) -> set[tuple[int, ...] | None]:
    (main,) = case.records.subgraphs or ()
    return {each.shape for each in main.tensors or ()}
