"""Constants of 4-bit integers: the file may hold more bytes than they take."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.schema import read_model, write_model
from delegraph.schema.options import ExpandDimsOptions, ReshapeOptions
from delegraph.schema.tables import Buffer
from delegraph.testing import constant, graph_model, tensor


@pytest.mark.parametrize("op", ["RESHAPE", "EXPAND_DIMS"])
def test_bytes_beyond_the_elements_do_not_count(op: str) -> None:
    values = np.arange(-8, 7, dtype=np.int8)
    operand = constant(np.int32([3, 5] if op == "RESHAPE" else [0]))
    options = ReshapeOptions() if op == "RESHAPE" else ExpandDimsOptions()
    shape = (3, 5) if op == "RESHAPE" else (1, 15)
    model = graph_model(
        [(op, "x o", "y", options)],
        inputs="",
        outputs="y",
        tensors={"x": constant(values, "INT4"), "o": operand, "y": tensor(shape, "INT4")},
    )
    records = read_model(np.frombuffer(model, np.uint8))
    index = records.subgraphs[0].tensors[0].buffer
    longer = np.concatenate([records.buffers[index].data, np.zeros(20, np.uint8)])
    buffers = [Buffer(data=longer) if i == index else b for i, b in enumerate(records.buffers)]
    interpreter = Interpreter(
        model_content=write_model(records.replace(buffers=tuple(buffers))), delegates=[]
    )
    interpreter.allocate_tensors()
    interpreter.invoke()
    output = interpreter.get_output_details()[0]["index"]
    np.testing.assert_array_equal(interpreter.get_tensor(output), values.reshape(shape))
