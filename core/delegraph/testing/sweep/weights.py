"""Oddities (random changes) of weights: narrow types, FLOAT16 and sparse weights."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.dtypes import pack
from delegraph.schema import tables
from delegraph.schema.enums import BuiltinOperator, TensorType
from delegraph.testing.operator_cases.quantizing import sparse_rows
from delegraph.testing.sweep.draft import Draft, bytes_of, constant_array


def narrow_weights(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with INT8 weights changed to INT4 or INT2; None without INT8 weights."""
    found = _weights(draft, np.dtype(np.int8))
    if not found:
        return None
    index, type_ = chance.choice(found), chance.choice((TensorType.INT4, TensorType.INT2))
    values = constant_array(draft, index)
    assert values is not None
    low, high = (-8, 7) if type_ is TensorType.INT4 else (-2, 1)
    packed = pack(np.clip(values, low, high), type_)
    return draft.with_data(index, packed).with_tensor(index, type=type_)


def float16_weights(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with FLOAT32 weights stored as FLOAT16, mostly before a DEQUANTIZE.

    The result is None if there are no FLOAT32 weights, or if DEQUANTIZE would write a graph input.
    """
    found = _weights(draft, np.dtype(np.float32))
    if not found:
        return None
    index = chance.choice(found)
    values = constant_array(draft, index)
    assert values is not None
    with np.errstate(over="ignore"):
        data = bytes_of(values.astype(np.float16))
    if chance.random() < 0.2:
        return draft.with_data(index, data).with_tensor(index, type=TensorType.FLOAT16)
    stored = draft.tensors[index].replace(name="halves", type=TensorType.FLOAT16)
    return _computed(draft, index, BuiltinOperator.DEQUANTIZE, stored, data)


def sparse_weights(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with a sparse weight matrix, in half of the cases before a DENSIFY.

    The result is None if there is no weight matrix, or if DENSIFY would write a graph input.
    """
    found = [i for i in _weights(draft, None) if len(draft.tensors[i].shape or ()) == 2]
    if not found:
        return None
    index = chance.choice(found)
    values = constant_array(draft, index)
    assert values is not None
    kept = np.random.default_rng(chance.randrange(1 << 30)).random(values.shape) < 0.4
    sparse = sparse_rows(draft.tensors[index].type.name, kept, values[kept])
    if chance.random() < 0.5:
        return draft.with_data(index, sparse.data).with_tensor(index, sparsity=sparse.sparsity)
    stored = draft.tensors[index].replace(name="sparse", sparsity=sparse.sparsity)
    return _computed(draft, index, BuiltinOperator.DENSIFY, stored, sparse.data)


def _weights(draft: Draft, dtype: np.dtype[Any] | None) -> list[int]:
    """Return the indices of dense constants with two or more axes, of *dtype* if it is given."""
    arrays = {i: constant_array(draft, i) for i in draft.constants()}
    return [
        i for i, x in arrays.items()
        if x is not None and x.ndim > 1 and x.size and x.dtype.kind in "fi"
        and dtype in (None, x.dtype)
    ]  # fmt: skip


def _computed(
    draft: Draft, index: int, op: BuiltinOperator, stored: tables.Tensor, data: NDArray[Any] | None
) -> Draft | None:
    """Return the draft with a node of *op* that computes constant *index* from another constant.

    The other constant is the tensor *stored* with the bytes *data*. The result is None if the
    tensor *index* is also a graph input, which no node may write.
    """
    if index in (draft.main.inputs or ()):
        return None
    codes, source = draft.records.operator_codes or (), len(draft.tensors)
    changed = draft.with_main(tensors=(*draft.tensors, stored)).with_data(source, data)
    node = tables.Operator(opcode_index=len(codes), inputs=(source,), outputs=(index,))
    changed = changed.with_data(index, None)
    changed = changed.with_main(operators=(node, *(changed.main.operators or ())))
    code = tables.operator_code(op, version=1, custom_code=None)
    return Draft(changed.records.replace(operator_codes=(*codes, code)), changed.steps)
