"""Scales of channels that do not fit what they are for: refused with how many there are."""

from __future__ import annotations

import pytest

from delegraph import Interpreter
from delegraph.errors import NodeError
from delegraph.testing import one_op_model, tensor


def test_a_resized_output_has_no_more_channels_than_scales() -> None:
    y = tensor((2, 3), "INT8", scale=[0.5, 0.25, 1], zero_point=[0, 0, 0], axis=1)
    interpreter = Interpreter(
        model_content=one_op_model("QUANTIZE", [tensor((2, 3))], [y]), delegates=[]
    )
    interpreter.resize_tensor_input(0, [2, 4])
    with pytest.raises(NodeError, match=r"output 't1' has 3 scales, its shape is \(2, 4\)"):
        interpreter.allocate_tensors()
