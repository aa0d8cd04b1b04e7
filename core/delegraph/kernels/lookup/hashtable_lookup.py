"""Kernel of HASHTABLE_LOOKUP: finds values by integer key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.checks import require_rank, require_same_type, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel("HASHTABLE_LOOKUP")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare HASHTABLE_LOOKUP: each key's value, and whether the table has the key.

    Keys must be sorted. Of equal keys, the key that the official binary search finds is used.

    Source:
        tflite/kernels/hashtable_lookup.cc.
    """
    lookup, keys, values, y, hits = tensors_of(context, node, 3, 2)
    for tensor in (lookup, keys):
        require_rank(tensor, 1)
        require_type(tensor, {TensorType.INT32})
    if not values.shape or values.shape[0] != keys.shape[0]:
        raise OperatorError(f"{keys.shape[0]} keys for values of shape {list(values.shape)}")
    if values.type == TensorType.STRING:
        require_rank(values, 1)
    require_same_type(values, y)
    require_type(hits, {TensorType.UINT8})
    context.resize_tensor(y, (*lookup.shape, *values.shape[1:]))
    context.resize_tensor(hits, lookup.shape)
    absent = b"" if values.type == TensorType.STRING else 0

    def run() -> None:
        if not keys.shape[0]:
            raise OperatorError("the table is empty")
        at, found = _search(keys.data, lookup.data)
        y.data[...] = values.data[at]
        y.data[~found] = absent
        hits.data[...] = found

    return run


def _search(
    keys: NDArray[np.int32], wanted: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the index in *keys* of each wanted key, and whether the key exists.

    Of equal keys, the index is that of the key that C's ``bsearch`` finds.

    >>> _search(np.int32([1, 1, 1, 4]), np.int32([1, 2, 4]))
    (array([2, 3, 3]), array([ True, False,  True]))
    """
    low, high = np.zeros(len(wanted), np.intp), np.full(len(wanted), len(keys))
    at, found = low, np.zeros(len(wanted), bool)
    for _ in range(len(keys).bit_length()):
        at = ((low + high) // 2).clip(max=len(keys) - 1)
        key, is_open = keys[at], low < high
        found |= is_open & (key == wanted)
        low = np.where(is_open & (key < wanted), at + 1, low)
        high = np.where(is_open & (key > wanted), at, high)
    return at, found
