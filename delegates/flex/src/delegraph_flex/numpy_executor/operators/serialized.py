"""Operators that convert tensors to bytes and back.

Source:
    core/kernels/serialize_tensor_op.cc; Tensor::AsProtoTensorContent, core/framework/tensor.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.messages import TensorMessage
from delegraph_flex.numpy_executor.registry import ALL, operator


@operator("SerializeTensor", types=ALL)
def serialize_tensor(node: FlexNode) -> Step:
    """Function that encodes an array as a protobuf message with type, shape and elements."""
    type = node.type("T")

    def run(x: NDArray[Any]) -> NDArray[Any]:
        message = TensorMessage(dtype=int(type))
        message.tensor_shape.SetInParent()
        for size in x.shape:
            message.tensor_shape.dim.add(size=size)
        if x.dtype.hasobject:
            message.string_val.extend(x.ravel().tolist())
        else:
            message.tensor_content = np.ascontiguousarray(x).tobytes()
        return np.array(message.SerializeToString(), object)

    return run
