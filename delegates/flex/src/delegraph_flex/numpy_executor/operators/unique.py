"""Operators that remove repeated values, or compute differences of lists."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.indices import axis_of
from delegraph_flex.numpy_executor.registry import operator

Parts = tuple[NDArray[Any], NDArray[np.intp], NDArray[np.intp]]
"""First position of each distinct value, the value's number for each element, and counts."""


@operator("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(node: FlexNode) -> Step:
    """Return a function that returns distinct values or slices in order of occurrence.

    Further outputs are indices and counts.
    """
    dtype = node.type("out_idx", DataType.INT32).dtype
    has_counts = "Counts" in node.op

    def run(x: NDArray[Any], *axis: NDArray[Any]) -> list[NDArray[Any]]:
        along = None
        if axis and axis[0].size:
            along = axis_of(axis[0], x.ndim)
        elif x.ndim != 1:
            raise ValueError(f"input has shape {list(x.shape)}, expected a vector")
        firsts, where, counts = _parts(x if along is None else np.moveaxis(x, along, 0))
        results = [x.take(firsts, 0 if along is None else along), where.astype(dtype)]
        return [*results, counts.astype(dtype)] if has_counts else results

    return run


def _parts(x: NDArray[Any]) -> Parts:
    if x.ndim > 1 or x.dtype.hasobject:
        return _parts_of_keys(x)
    _, firsts, where, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = firsts.argsort()  # NumPy returns sorted values
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size)
    return firsts[order], ranks[where.reshape(-1)], counts[order]


def _parts_of_keys(x: NDArray[Any]) -> Parts:
    """Return the distinct parts of *x*, strings or slices, compared by Python's equality."""
    keys = (
        x.tolist()
        if x.ndim == 1
        else map(tuple, x.reshape(len(x), math.prod(x.shape[1:])).tolist())
    )
    known: dict[Any, int] = {}
    where = np.fromiter((known.setdefault(key, len(known)) for key in keys), np.intp, len(x))
    firsts = np.full(len(known), len(x), np.intp)
    np.minimum.at(firsts, where, np.arange(len(x)))
    return firsts, where, np.bincount(where, minlength=len(known))


@operator("ListDiff")
def list_diff(node: FlexNode) -> Step:
    """Return a function that returns the elements that a second list lacks, and positions."""
    dtype = node.type("out_idx", DataType.INT32).dtype

    def run(x: NDArray[Any], y: NDArray[Any]) -> list[NDArray[Any]]:
        if x.ndim != 1 or y.ndim != 1:
            raise ValueError(f"{list(x.shape)} and {list(y.shape)}, expected two vectors")
        if x.dtype.hasobject:
            others = set(y.tolist())
            keep = np.fromiter((value not in others for value in x.tolist()), np.bool_, x.size)
        else:
            keep = ~np.isin(x, y)
        where = np.flatnonzero(keep)
        return [x[where], where.astype(dtype)]

    return run
