"""The executor itself: values are TensorFlow's eager tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.python.eager import context as eager_context
from tensorflow.python.eager import execute as eager_execute
from tensorflow.python.framework import op_def_registry

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Executor, Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.node_def import AttrValue, Function

_HANDLES = (TensorType.RESOURCE, TensorType.VARIANT)


class TensorFlowExecutor(Executor):
    """Runs operators eagerly, one by one."""

    name = "tensorflow"
    retaining = frozenset(
        {
            "AssignVariableOp",
            "QueueEnqueueV2",
            "RaggedTensorToVariant",
            "SparseReshape",
            "StridedSlice",
            "TensorArrayWriteV3",
            "TensorListPushBack",
            "TensorListSetItem",
            "TensorMapInsert",
        }
    )

    def __init__(self) -> None:
        self._context = eager_context.context()
        self._context.ensure_initialized()

    def bind(self, node: FlexNode) -> Step:
        op_def = op_def_registry.get(node.op)
        if op_def is None:
            raise Unsupported(f"TensorFlow {tf.__version__} does not have {node.op}", "op")
        known = {attr.name for attr in op_def.attr}
        attrs = [
            part
            for name, value in node.node_def.attrs.items()
            if name in known
            for part in (name, _attribute(value))
        ]
        count, context = len(node.output_types), self._context
        flat, op = tuple(attrs), node.op

        def run(*values: Any) -> Any:
            return eager_execute.execute(op, count, list(values), flat, context)

        return run

    def enter(self, array: NDArray[Any], type: TensorType) -> Any:
        if type in _HANDLES:
            return array[()]
        if type is TensorType.STRING:
            return tf.constant(array, tf.string)
        return tf.constant(array, DataType.of(type))

    def leave(self, value: Any, type: TensorType) -> NDArray[Any]:
        if type not in _HANDLES:
            result = value.numpy()
            return np.array(result, object) if type is TensorType.STRING else np.asarray(result)
        array = np.empty((), object)
        array[()] = value
        return array

    def describe(self) -> str:
        return f"{self.name} {tf.__version__}"


def _attribute(value: AttrValue) -> Any:
    """Return an attribute as eager execution takes it."""
    if isinstance(value, list):
        return [_attribute(item) for item in value]
    if isinstance(value, DataType):
        return int(value)
    if isinstance(value, Function):
        return value.name
    if isinstance(value, tuple):
        return list(value)
    return value
