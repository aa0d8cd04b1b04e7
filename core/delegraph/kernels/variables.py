"""VAR_HANDLE, ASSIGN_VARIABLE and READ_VARIABLE: values that are kept between invokes.

A handle is a RESOURCE tensor with one element: the variable's key, ``(container, name)``. The
variable itself is an array in ``context.resources`` under that key.
"""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.checks import tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, output_tensor
from delegraph.operators.resource_handle import key_of, require_handle, write_handle
from delegraph.schema.enums import TensorType


@kernel("VAR_HANDLE")
def prepare_var_handle(context: OpContext, node: Node) -> Eval:
    """Prepare VAR_HANDLE: the key of a variable.

    Source:
        tflite/kernels/var_handle.cc.
    """
    container = getattr(node.options, "container", None) or ""
    name = getattr(node.options, "shared_name", None) or ""
    return write_handle(context, output_tensor(context, node), (container, name))


@kernel("ASSIGN_VARIABLE")
def prepare_assign_variable(context: OpContext, node: Node) -> Eval:
    """Prepare ASSIGN_VARIABLE: copies input 1 to the variable of input 0.

    Source:
        tflite/kernels/assign_variable.cc.
    """
    handle, value = tensors_of(context, node, 2, 0)
    require_handle(handle)

    def assign() -> None:
        key = key_of(handle)
        stored = context.resources.get(key)
        if stored is not None and (stored.shape, stored.dtype) == (value.shape, value.dtype):
            np.copyto(stored, value.data)
        else:
            context.resources[key] = value.data.copy()

    return assign


@kernel("READ_VARIABLE")
def prepare_read_variable(context: OpContext, node: Node) -> Eval:
    """Prepare READ_VARIABLE: a copy of the variable's value.

    An output declared without dimensions gets the variable's shape during invoke. TFLM's variables
    are zero at first; LiteRT's have no value.

    Source:
        tflite/kernels/read_variable.cc; MicroResourceVariables::ResetAll,
        tflite-micro/micro/micro_resource_variable.cc.
    """
    handle, y = tensors_of(context, node, 1)
    require_handle(handle)
    if not y.shape:
        context.set_dynamic(y)
    begins_at_zero = context.numerics == "micro"

    def read() -> None:
        stored = context.resources.get(key_of(handle))
        if stored is None and begins_at_zero:
            y.data.fill(y.zero_point if y.type is TensorType.INT8 else 0)
            return
        if stored is None:
            raise OperatorError(f"variable {key_of(handle)} is read before it is assigned")
        if not isinstance(stored, np.ndarray):
            raise OperatorError(f"resource {key_of(handle)} is a table, expected a variable")
        if stored.dtype != y.dtype:
            raise OperatorError(f"variable holds {stored.dtype}, expected {y.dtype}")
        if y.is_dynamic:
            context.resize_tensor(y, stored.shape)
        elif y.data.size != stored.size:
            raise OperatorError(f"variable is {list(stored.shape)}, expected {list(y.shape)}")
        np.copyto(y.data, stored.reshape(y.data.shape))

    return read
