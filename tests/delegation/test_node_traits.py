from __future__ import annotations

from dataclasses import dataclass

import pytest

from delegraph.delegation.node_traits import NodeTraits, fused_activation
from delegraph.operators.registration import Node
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import ActivationFunctionType, TensorType
from delegraph.schema.options import AddOptions, ReshapeOptions


@dataclass
class _Unknown:
    fused_activation_function: int = 77


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, "NONE"),
        (ReshapeOptions(), "NONE"),
        (AddOptions(), "NONE"),
        (AddOptions(fused_activation_function=ActivationFunctionType.RELU6), "RELU6"),
        (_Unknown(4), "TANH"),
        (_Unknown(), "77"),
    ],
)
def test_the_fused_activation_has_a_name(options: object, expected: str) -> None:
    assert fused_activation(options) == expected


def test_the_form_of_a_node_is_read_off_its_tensors() -> None:
    types = (TensorType.FLOAT32, TensorType.INT8, TensorType.FLOAT32)
    tensors = [Tensor(i, type, (1,)) for i, type in enumerate(types)]
    options = AddOptions(fused_activation_function=ActivationFunctionType.RELU)
    form = NodeTraits.of("CONV_2D", Node(0, (0, 1, -1), (2,), options=options, version=3), tensors)
    assert form.types == (("input", "FLOAT32"), ("weights", "INT8"), ("output", "FLOAT32"))
    assert str(form) == "CONV_2D v3 of input FLOAT32, weights INT8, output FLOAT32 with RELU"
