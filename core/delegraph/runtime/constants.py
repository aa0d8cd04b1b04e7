"""Converts the constants of a model file to tensor data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.graph.dtypes import BITS, NUMPY_DTYPES, OBJECT_TYPES, byte_size
from delegraph.graph.model import TensorSpec, rows_of
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from delegraph.graph.model import SubgraphSpec


def runtime_tensors(subgraph: SubgraphSpec) -> list[Tensor]:
    """Return the tensors of a subgraph as they are before allocation."""
    strings: dict[tuple[int, tuple[int, ...]], Any] = {}
    return [
        Tensor.from_spec(row, None if row[_DATA] is None else _constant(row, strings))
        for row in rows_of(subgraph.tensors)
    ]


_DATA = TensorSpec._fields.index("data")


def _constant(row: tuple[Any, ...], strings: dict[tuple[int, tuple[int, ...]], Any]) -> Any:
    """Return the array of the constant whose ``TensorSpec`` has the fields *row*.

    *strings* maps buffer and shape to decoded strings, so that STRING tensors share them.
    """
    spec = TensorSpec._make(row)
    if spec.type is not TensorType.STRING:
        return constant_value(spec)
    key = spec.buffer, spec.shape
    if key not in strings:
        strings[key] = constant_value(spec)
    return strings[key]


def constant_value(spec: TensorSpec) -> Any:
    """Array of the constant *spec*, as in ``Tensor.data``; None if *spec* is no constant."""
    if spec.data is None:
        return None
    if spec.type == TensorType.STRING:
        from delegraph.graph.strings import decode_strings  # lazy import: few models have any

        return decode_strings(spec.data, spec.shape)
    if spec.type in BITS:
        return spec.data if spec.sparsity else spec.data[: byte_size(spec.type, spec.shape)]
    if spec.type in OBJECT_TYPES:
        return None
    dtype = NUMPY_DTYPES[spec.type]
    if spec.sparsity is not None:
        return spec.data[: len(spec.data) // dtype.itemsize * dtype.itemsize].view(dtype)
    count = int(np.prod(spec.shape, dtype=np.int64))
    return spec.data[: count * dtype.itemsize].view(dtype).reshape(spec.shape)
