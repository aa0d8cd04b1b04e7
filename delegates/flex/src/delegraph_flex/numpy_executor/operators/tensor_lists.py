"""Lists of tensors, which loops use; every operator returns a new list.

Source:
    tensorflow/core/kernels/list_kernels.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType, zeros
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import Taken, require
from delegraph_flex.node_def import Shape
from delegraph_flex.numpy_executor.handles import of_kind
from delegraph_flex.numpy_executor.registry import functions, operator, step_of

Array = NDArray[Any]
F = TypeVar("F", bound=Step)


@dataclass(frozen=True, slots=True)
class TensorList:
    """An immutable list of tensors of one type.

    Attributes:
        type: type of the elements.
        shape: shape that all elements share, -1 for dimensions that differ; None if even the rank
            is unknown.
        items: the elements; None for an element that was never set.
        most: largest number of elements; below 0 means no limit.
    """

    type: DataType
    shape: Shape
    items: tuple[Array | None, ...] = ()
    most: int = -1

    def with_items(self, items: tuple[Array | None, ...]) -> TensorList:
        """Return a list with the elements *items*, and this list's type, shape and limit."""
        if 0 <= self.most < len(items):
            raise ValueError(f"list of {len(items)} elements, its limit is {self.most}")
        return replace(self, items=items)

    def item(self, index: int, shape: Shape) -> Array:
        """Return the element at *index*; zeros of *shape* if it was never set."""
        if not 0 <= index < len(self.items):
            raise ValueError(f"element {index} of a list of {len(self.items)}")
        found = self.items[index]
        if found is not None:
            return found
        known = merged(self.shape, shape)
        for other in self.items:
            known = merged(known, None if other is None else other.shape)
        return unset(self.type, known)


def unset(type: DataType, shape: Shape) -> Array:
    """Return zeros of *type* and *shape*, the value of a list element that was never set.

    Raises:
        ValueError: the shape is not fully known.
    """
    if shape is None or -1 in shape:
        raise ValueError(f"an element that was never set has the unknown shape {shape}")
    require(shape, type.dtype)
    return zeros(shape, type.dtype)


def merged(a: Shape, b: Shape) -> Shape:
    """Return the shape that matches both *a* and *b*, in which -1 and None match any size.

    Raises:
        ValueError: the shapes do not match.
    """
    if a is None or b is None:
        return b if a is None else a
    if len(a) != len(b) or any(x != y and -1 not in (x, y) for x, y in zip(a, b, strict=True)):
        raise ValueError(f"shapes {list(a)} and {list(b)} do not agree")
    return tuple(y if x == -1 else x for x, y in zip(a, b, strict=True))


def _shape(given: Array) -> Shape:
    """Return the shape in the tensor *given*; the scalar -1 gives None, an unknown shape."""
    if np.ndim(given) == 0:
        if int(given) != -1:
            raise ValueError(f"shape is the scalar {int(given)}, expected a vector or -1")
        return None
    return tuple(max(int(size), -1) for size in given)


def _count(given: Array) -> int:
    count = int(given)
    require((count,), object)
    return count


def _list(value: Any, type: DataType) -> TensorList:
    found = of_kind(value, TensorList, "list of tensors")
    if found.type != type:
        raise ValueError(f"list of {found.type.name}, expected {type.name}")
    return found


def _own(tensor: Array, list_shape: Shape) -> Array:
    """Return a copy of *tensor*, after a check of its shape against *list_shape*, the list's."""
    merged(list_shape, np.shape(tensor))
    return np.array(tensor)


def _type(node: FlexNode) -> DataType:
    type = node.type("element_dtype")
    if type in (DataType.RESOURCE, DataType.VARIANT):
        raise Unsupported(f"a list of {type.name}", "dtype")
    return type


def _of_elements(name: str) -> Callable[[F], F]:
    """Return the decorator that registers a step whose first argument is the elements' type."""

    def register(step: F) -> F:
        operator(name)(lambda node: partial(step, _type(node)))
        return step

    return register


@_of_elements("EmptyTensorList")
def empty(type: DataType, shape: Array, most: Array) -> TensorList:
    """Return an empty list."""
    return TensorList(type, _shape(shape), (), int(most))


@_of_elements("TensorListReserve")
def reserve(type: DataType, shape: Array, count: Array) -> TensorList:
    """Return a list of elements that are not set."""
    return TensorList(type, _shape(shape), (None,) * _count(count))


@_of_elements("TensorListPushBack")
def push_back(type: DataType, handle: Any, tensor: Array) -> TensorList:
    """Return a list with another element at its end."""
    found = _list(handle, type)
    return found.with_items((*found.items, _own(tensor, found.shape)))


@_of_elements("TensorListPopBack")
def pop_back(type: DataType, handle: Any, shape: Array) -> list[Any]:
    """Return a list without its last element, and this element."""
    found = _list(handle, type)
    if not found.items:
        raise ValueError("trying to pop from an empty list")
    last = found.item(len(found.items) - 1, _shape(shape))
    return [replace(found, items=found.items[:-1]), last]


functions({"TensorListLength": lambda handle: np.array(len(handle.items), np.int32)})


@operator("TensorListElementShape")
def element_shape(node: FlexNode) -> Step:
    """Function that returns the shape of a list's elements; the scalar -1 if it is unknown."""
    dtype = node.type("shape_type").dtype
    return lambda handle: np.array(-1 if handle.shape is None else handle.shape, dtype)


@_of_elements("TensorListGetItem")
def get_item(type: DataType, handle: Any, index: Array, shape: Array) -> Array:
    """Return the element at an index."""
    return _list(handle, type).item(int(index), _shape(shape))


@operator("TensorListSetItem")
def set_item(node: FlexNode) -> Step:
    """Return a function that replaces the element at an index."""
    type, resize = _type(node), node.bool("resize_if_index_out_of_bounds", False)

    def run(handle: Any, index: Array, tensor: Array) -> TensorList:
        found, at = _list(handle, type), int(index)
        items = list(found.items)
        if resize and len(items) <= at:
            require((at + 1,), object)
            items += [None] * (at + 1 - len(items))
        if not 0 <= at < len(items):
            raise ValueError(f"trying to modify element {at} in a list with {len(items)} elements")
        items[at] = _own(tensor, found.shape)
        return found.with_items(tuple(items))

    return run


@step_of("TensorListResize")
def resize(handle: Any, size: Array) -> TensorList:
    """Return a list shortened, or extended by elements that are not set."""
    found: TensorList = _list(handle, handle.type)
    items = found.items[: _count(size)]
    return found.with_items(items + (None,) * (_count(size) - len(items)))


def _items(found: TensorList, places: Iterable[int], shape: Shape) -> list[Array]:
    """Return the elements of *found* at *places*, with a check of their total memory.

    Elements that were never set are zeros of *shape*.
    """
    taken, items = Taken("elements of a list"), []
    for place in places:
        items.append(found.item(place, shape))
        taken.add(items[-1].nbytes)
    return items


def _stacked(items: list[Array], type: DataType, shape: Shape) -> Array:
    if items:
        return np.stack(items)
    if shape is None or -1 in shape:
        raise ValueError(f"stacking no elements needs their shape, which is {shape}")
    return np.empty((0, *shape), type.dtype)


@operator("TensorListStack")
def stack(node: FlexNode) -> Step:
    """Return a function that stacks all elements of a list into one tensor."""
    type, count = _type(node), node.int("num_elements", -1)

    def run(handle: Any, shape: Array) -> Array:
        found = _list(handle, type)
        if count not in (-1, len(found.items)):
            raise ValueError(f"list has {len(found.items)} elements, expected {count}")
        known = merged(found.shape, _shape(shape))
        items = _items(found, range(len(found.items)), known)
        return _stacked(items, type, known)

    return run


@_of_elements("TensorListGather")
def gather(type: DataType, handle: Any, indices: Array, shape: Array) -> Array:
    """Return the elements at some indices, stacked into one tensor."""
    found = _list(handle, type)
    known = merged(found.shape, _shape(shape))
    return _stacked(_items(found, indices.tolist(), known), type, known)


@_of_elements("TensorListFromTensor")
def from_tensor(type: DataType, tensor: Array, shape: Array) -> TensorList:
    """Return a list of a tensor's rows."""
    if np.ndim(tensor) == 0:
        raise ValueError("tensor is a scalar, expected at least one dimension")
    known = merged(_shape(shape), tensor.shape[1:])
    return TensorList(type, known, tuple(np.array(row, type.dtype) for row in tensor))


def _scattered(target: TensorList, tensor: Array, indices: Array, least: int = 0) -> TensorList:
    """Return *target* with the rows of *tensor* at *indices*, extended if necessary.

    The result has at least *least* elements.
    """
    if np.ndim(indices) != 1 or len(indices) != len(tensor):
        raise ValueError(f"{np.size(indices)} indices for {len(tensor)} elements")
    places = indices.tolist()
    if min(places, default=0) < 0:
        raise ValueError(f"indices {places[:8]}, expected 0 or more")
    require((max(places, default=-1) + 1,), object)
    items = list(target.items)
    items += [None] * (max(least, max(places, default=-1) + 1) - len(items))
    for place, row in zip(places, tensor, strict=True):
        items[place] = _own(row, target.shape)
    return target.with_items(tuple(items))


@_of_elements("TensorListScatter")
def scatter(type: DataType, tensor: Array, indices: Array, shape: Array) -> TensorList:
    """Return a list of the rows of a tensor, at given indices."""
    return _scattered(TensorList(type, _shape(shape)), tensor, indices)


@_of_elements("TensorListScatterV2")
def scatter_to_length(
    type: DataType, tensor: Array, indices: Array, shape: Array, count: Array
) -> TensorList:
    """Return a list of a tensor's rows at given indices; *count* is its smallest length."""
    least = 0 if int(count) < 0 else _count(count)
    if int(count) >= 0 and max(indices.tolist(), default=-1) >= least:
        raise ValueError(f"indices up to {max(indices.tolist())} in a list of {least}")
    return _scattered(TensorList(type, _shape(shape)), tensor, indices, least)


@_of_elements("TensorListScatterIntoExistingList")
def scatter_into(type: DataType, handle: Any, tensor: Array, indices: Array) -> TensorList:
    """Return a list with some elements replaced by rows of a tensor."""
    return _scattered(_list(handle, type), tensor, indices)


@operator("TensorListConcat", "TensorListConcatV2")
def concatenate(node: FlexNode) -> Step:
    """Function that concatenates all elements on their first dimension, and returns the lengths."""
    type = _type(node)
    declared = node.shape("element_shape") if node.op == "TensorListConcat" else None

    def run(handle: Any, *further: Array) -> list[Array]:
        found = _list(handle, type)
        known = merged(found.shape, declared)
        if further:
            known = merged(known, _shape(further[0]))
        items = _items(found, range(len(found.items)), known)
        lengths = np.array([len(item) for item in items], np.int64)
        if items:
            return [np.concatenate(items), lengths]
        if known is None or -1 in known[1:]:
            raise ValueError(f"joining no elements needs their shape, which is {known}")
        return [np.empty((0, *known[1:]), type.dtype), lengths]

    return run


@_of_elements("TensorListSplit")
def split(type: DataType, tensor: Array, shape: Array, lengths: Array) -> TensorList:
    """Return a list of the parts into which a tensor is cut along its first dimension."""
    ends = np.cumsum(lengths).tolist()
    if min(lengths.tolist(), default=0) < 0 or (ends[-1] if ends else 0) != len(tensor):
        raise ValueError(f"lengths {lengths.tolist()[:8]} of a tensor of {len(tensor)} rows")
    known = _shape(shape)
    parts = np.split(tensor, ends[:-1]) if ends else []
    return TensorList(type, known, tuple(_own(part, known) for part in parts))


@_of_elements("TensorListConcatLists")
def concatenate_lists(type: DataType, a: Any, b: Any) -> TensorList:
    """Return two lists concatenated."""
    first, second = _list(a, type), _list(b, type)
    known = merged(first.shape, second.shape)
    return TensorList(type, known, first.items + second.items)
