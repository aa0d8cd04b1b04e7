"""RESOURCE tensors, whose value names a variable or a table of the interpreter."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.registration import Eval, OpContext, nothing
from delegraph.operators.tensor import AllocationType, Tensor, element_count
from delegraph.schema.enums import TensorType


def require_handle(handle: Tensor) -> None:
    """Check that *handle*, the first input of a node, names a resource.

    Raises:
        OperatorError: the tensor is not a single element of type RESOURCE (INT32 in old models).
    """
    if handle.type not in (TensorType.RESOURCE, TensorType.INT32):
        raise OperatorError(f"handle is {handle.type.name}, expected RESOURCE or INT32")
    if element_count(handle.shape) != 1:
        raise OperatorError(f"handle has shape {list(handle.shape)}, expected one element")


def key_of(handle: Tensor) -> Any:
    """Return the key (text or number) of the variable or table that *handle* stands for."""
    return handle.data.reshape(-1)[0]


def write_handle(context: OpContext, output: Tensor, key: Hashable) -> Eval:
    """Make *output* a RESOURCE scalar with the value *key*; return an evaluation without work.

    Handles are written while preparing, so they do not make a graph dynamic.
    """
    if output.type is not TensorType.RESOURCE:
        raise OperatorError(f"output is {output.type.name}, expected RESOURCE")
    output.allocation_type = AllocationType.PERSISTENT_RO
    context.resize_tensor(output, ())
    data = np.empty((), object)
    data[()] = key
    output.data = data
    return nothing
