"""HASHTABLE, HASHTABLE_IMPORT, HASHTABLE_FIND and HASHTABLE_SIZE: static look-up tables."""

from __future__ import annotations

from typing import Any

from delegraph.arithmetic.output_shape import check_type, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    require_counts,
    require_one_element,
    require_type,
    tensors_of,
    type_option,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, output_tensor
from delegraph.operators.resource_handle import key_of, require_handle, write_handle
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

PAIRS = ((TensorType.INT64, TensorType.STRING), (TensorType.STRING, TensorType.INT64))
"""Pairs of key type and value type that hash tables support."""


@kernel("HASHTABLE")
def prepare_hashtable(context: OpContext, node: Node) -> Eval:
    """Prepare HASHTABLE: the handle of a table.

    Source:
        tflite/kernels/hashtable.cc.
    """
    require_counts(node, None)
    key_type = type_option(node, "key_dtype", TensorType.FLOAT32)
    value_type = type_option(node, "value_dtype", TensorType.FLOAT32)
    if (key_type, value_type) not in PAIRS:
        raise OperatorError(
            f"a table of {key_type.name} to {value_type.name}, "
            "expected INT64 to STRING or STRING to INT64"
        )
    name = ("hashtable", int(getattr(node.options, "table_id", 0)))
    return write_handle(context, output_tensor(context, node), name)


@kernel("HASHTABLE_IMPORT")
def prepare_import(context: OpContext, node: Node) -> Eval:
    """Prepare HASHTABLE_IMPORT: fills a table; a table that already has keys stays unchanged.

    Source:
        tflite/kernels/hashtable_import.cc; resource/static_hashtable.cc.
    """
    handle, keys, values = tensors_of(context, node, 3, 0)
    require_handle(handle)
    if (keys.type, values.type) not in PAIRS:
        raise OperatorError(
            f"keys are {keys.type.name} and values {values.type.name}, "
            "expected INT64 and STRING or STRING and INT64"
        )
    if keys.shape != values.shape:
        raise OperatorError(f"{list(keys.shape)} keys and {list(values.shape)} values")

    def fill() -> None:
        table = _table(context, handle)
        if not table:
            pairs = zip(keys.data.reshape(-1).tolist(), values.data.reshape(-1), strict=True)
            for key, value in pairs:
                table.setdefault(key, value)

    return fill


@kernel("HASHTABLE_FIND")
def prepare_find(context: OpContext, node: Node) -> Eval:
    """Prepare HASHTABLE_FIND: each key's value, or input 2 for an unknown key.

    Source:
        tflite/kernels/hashtable_find.cc.
    """
    handle, keys, default, y = tensors_of(context, node, 3)
    require_handle(handle)
    check_type(default, y, "default value")
    require_one_element(default)

    def find() -> None:
        table, other = _table(context, handle), default.data.reshape(-1)[0]
        target = y.data.reshape(-1)
        for i, key in enumerate(keys.data.reshape(-1).tolist()):
            target[i] = table.get(key, other)

    return size_output(context, y, lambda: (keys.shape, find))


@kernel("HASHTABLE_SIZE")
def prepare_size(context: OpContext, node: Node) -> Eval:
    """Prepare HASHTABLE_SIZE: the number of keys, ``[1], int64``.

    Source:
        tflite/kernels/hashtable_size.cc.
    """
    handle, y = tensors_of(context, node, 1)
    require_handle(handle)
    require_type(y, {TensorType.INT64})
    return size_output(
        context, y, lambda: ((1,), lambda: y.data.fill(len(_table(context, handle))))
    )


def _table(context: OpContext, handle: Tensor) -> dict[Any, Any]:
    table: dict[Any, Any] = context.resources.setdefault(key_of(handle), {})
    return table
