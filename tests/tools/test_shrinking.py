from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delegraph.schema import tables
from delegraph.schema.reader import read_model
from delegraph.testing import one_op_model, tensor
from delegraph.tools.shrinking import shrunk


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
