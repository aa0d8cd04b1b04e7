"""Tensors that name a resource."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.output_shape import nothing
from delegraph.kernels.registration import Eval, OpContext
from delegraph.kernels.tensor import AllocationType, Tensor
from delegraph.schema.enums import TensorType


def write_handle(context: OpContext, output: Tensor, key: Hashable) -> Eval:
    """Make *output* a handle, a RESOURCE scalar that holds *key*, and return an eval without work.

    Handles are known while preparing, so they do not make a graph dynamic.
    """
    if output.type is not TensorType.RESOURCE:
        raise OperatorError(f"output is {output.type.name}, expected RESOURCE")
    output.allocation_type = AllocationType.PERSISTENT_RO
    context.resize_tensor(output, ())
    data = np.empty((), object)
    data[()] = key
    output.data = data
    return nothing
