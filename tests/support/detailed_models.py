"""Models of whose tensors and signatures there is much to tell."""

from __future__ import annotations

import numpy as np

from delegraph.schema import tables, write_model
from delegraph.schema.enums import Padding
from delegraph.schema.options import AddOptions, Conv2DOptions
from delegraph.testing import constant, one_op_model, tensor
from delegraph.testing.one_op import one_op_records


def convolution() -> bytes:
    """Return a per-channel quantized convolution with a dynamic batch and no bias."""
    x = tensor((1, 8, 8, 3), "INT8", scale=0.5, zero_point=-3, shape_signature=(-1, 8, 8, 3))
    weight = constant(np.ones((4, 3, 3, 3), np.int8), scale=[0.5, 0.25, 1, 2], axis=0)
    y = tensor((1, 6, 6, 4), "INT8", scale=0.25, zero_point=7, shape_signature=(-1, 6, 6, 4))
    options = Conv2DOptions(stride_w=1, stride_h=1, padding=Padding.VALID)
    return one_op_model("CONV_2D", [x, weight, None], [y], options)


def signatures() -> bytes:
    """Return a model with two signatures of one subgraph, not in alphabetical order."""
    records = one_op_records("ADD", [tensor((2,)), tensor((2,))], [tensor((2,))], AddOptions())
    names = tables.TensorMap
    made = [
        tables.SignatureDef(
            signature_key=key,
            inputs=(names(name="b", tensor_index=0), names(name="a", tensor_index=1)),
            outputs=(names(name="sum", tensor_index=2),),
        )
        for key in ("second", "first")
    ]
    return write_model(records.replace(signature_defs=tuple(made)))
