"""Oddities (random changes) of lengths: axes near the widths of vectors and tiles."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.schema import tables
from delegraph.testing.sweep.draft import Draft, bytes_of, constant_array
from delegraph.testing.sweep.sweep_case import Arrays

LENGTHS = (
    0, 1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 96, 127, 128, 129,
)  # fmt: skip
"""Lengths of axes: around the widths of vectors and tiles, primes, 1 and 0."""

LARGEST = 1 << 14
"""Largest number of elements of an array in which an axis is stretched."""


def stretched_axis(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with another length of one axis, in the file and in one input or all.

    The result is None if the inputs have no axis, or would be too large.
    """
    stretched = _stretched(chance, draft)
    if stretched is None:
        return None
    for index, array in zip(draft.main.inputs or (), stretched, strict=True):
        draft = draft.with_tensor(index, shape=array.shape, shape_signature=None)
    return replace(draft, steps=(stretched, stretched))


def resized(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with other input shapes at its second invoke, and the old ones afterwards.

    The result is None if the inputs have no axis, or would be too large.
    """
    stretched = _stretched(chance, draft)
    if stretched is None:
        return None
    return replace(draft, steps=(draft.steps[0], stretched, draft.steps[0]))


def _stretched(chance: Random, draft: Draft) -> Arrays | None:
    first = draft.steps[0]
    axes = sorted({(axis, n) for array in first for axis, n in enumerate(array.shape)})
    if not axes:
        return None
    axis, old = chance.choice(axes)
    new = chance.choice(LENGTHS)
    everywhere = chance.random() < 0.8
    arrays, done = [], False
    for array in first:
        fits = array.ndim > axis and array.shape[axis] == old and (everywhere or not done)
        arrays.append(_resized(array, axis, new) if fits else array)
        done = done or fits
    return None if any(a.size > LARGEST for a in arrays) else tuple(arrays)


def _resized(array: NDArray[Any], axis: int, length: int) -> NDArray[Any]:
    if not array.size:
        return np.zeros((*array.shape[:axis], length, *array.shape[axis + 1 :]), array.dtype)
    return np.asarray(array.take(np.arange(length) % array.shape[axis], axis))


def stretched_weights(chance: Random, draft: Draft) -> Draft | None:
    """Return the draft with another length for a weight axis, and all axes of equal length.

    Scales along these axes change as well. In one-dimensional integer constants, values equal to
    the old length sometimes become the new length. The result is None if there are no weights, or
    if an array would be too large.
    """
    arrays = {i: x for i in draft.constants() if (x := constant_array(draft, i)) is not None}
    lengths = sorted({n for x in arrays.values() if x.ndim > 1 for n in x.shape if n > 1})
    if not lengths:
        return None
    old, new = chance.choice(lengths), chance.choice(LENGTHS[1:])
    names_length = chance.random() < 0.5
    for index, x in arrays.items():
        changed = _of_length(x, old, new)
        if changed is x and x.dtype.kind == "i" and x.ndim == 1 and names_length:
            changed = np.where(x == old, new, x).astype(x.dtype)
        if changed.size > 4 * LARGEST:
            return None
        quantization = _stretched_scales(draft.tensors[index], old, new)
        draft = draft.with_data(index, bytes_of(changed))
        draft = draft.with_tensor(index, shape=changed.shape, quantization=quantization)
    steps = tuple(tuple(_of_length(x, old, new) for x in step) for step in draft.steps)
    if any(x.size > LARGEST for step in steps for x in step):
        return None
    for index, x in zip(draft.main.inputs or (), steps[0], strict=True):
        draft = draft.with_tensor(index, shape=x.shape, shape_signature=None)
    return replace(draft, steps=steps)


def _of_length(x: NDArray[Any], old: int, new: int) -> NDArray[Any]:
    for axis, length in enumerate(x.shape):
        if length == old:
            x = _resized(x, axis, new)
    return x


def _stretched_scales(tensor: tables.Tensor, old: int, new: int) -> Any:
    q = tensor.quantization
    changes = {
        name: _of_length(np.asarray(values), old, new)
        for name in ("scale", "zero_point")
        if q is not None and (values := getattr(q, name)) is not None
    }
    return None if q is None else q.replace(**changes)
