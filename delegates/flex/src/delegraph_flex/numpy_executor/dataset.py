"""Datasets of ``tf.data``, which are read one element at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from delegraph import TensorType
from delegraph.graph import NUMPY_DTYPES
from delegraph_flex.data_types import HANDLES, boxed
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.node_def import Shape
from delegraph_flex.numpy_executor.handles import of_kind

Element = tuple[Any, ...]
"""Element of a dataset: a value for each component, an array or a handle."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A sequence of elements that can be read any number of times, each time from the start.

    Attributes:
        read: function that returns an iterator over the elements. Before each element the iterator
            raises an error if the running call was requested to stop, as datasets may be endless.
    """

    read: Callable[[], Iterator[Element]]


def dataset_of(handle: Any) -> Dataset:
    """Return *handle*, after a check that it is a :class:`Dataset`; ValueError if it is not."""
    return of_kind(handle, Dataset, "dataset")


def check_element(element: Sequence[Any], node: FlexNode, types: str = "output_types") -> None:
    """Check that the values of an element have the types and shapes in the node's attributes.

    Raises:
        ValueError: a type or a shape differs.
    """
    kinds, shapes = node.types(types), node.shapes("output_shapes")
    if not len(kinds) == len(shapes) == len(element):
        raise ValueError(f"{len(element)} components, expected {len(kinds)}")
    for i, (value, kind, shape) in enumerate(zip(element, kinds, shapes, strict=True)):
        if kind.name in ("RESOURCE", "VARIANT"):
            continue
        if value.dtype != kind.dtype or not fits(np.shape(value), shape):
            raise ValueError(
                f"component {i} is {value.dtype}{list(np.shape(value))}, expected "
                f"{kind.name.lower()}{'' if shape is None else list(shape)}"
            )


def fits(shape: tuple[int, ...], declared: Shape) -> bool:
    """Whether *shape* matches *declared*, in which -1 matches any size."""
    if declared is None:
        return True
    return len(shape) == len(declared) and all(
        size in (-1, found) for size, found in zip(declared, shape, strict=True)
    )


def kept(value: Any) -> Any:
    """Return *value*, copied if it is an array that the interpreter may overwrite later."""
    return np.array(value) if isinstance(value, np.ndarray) else value


def function_of(node: FlexNode, name: str = "f") -> Callable[[Sequence[Any]], Element]:
    """Return the model's function that the attribute *name* refers to, as a Python function.

    Raises:
        Unsupported: the model lacks the function, or the host cannot run functions.
    """
    function = node.function(name).name
    signature, call = node.around.function(function)
    inputs, outputs = signature.input_types, signature.output_types

    def run(values: Sequence[Any]) -> Element:
        if len(values) != len(inputs):
            raise ValueError(f"function {function!r} takes {len(inputs)}, not {len(values)} values")
        arrays = [_array(value, type) for value, type in zip(values, inputs, strict=True)]
        results = call(function, arrays)
        return tuple(
            result[()] if type in HANDLES else result
            for result, type in zip(results, outputs, strict=True)
        )

    return run


def _array(value: Any, type: TensorType) -> Any:
    if type not in HANDLES:
        array = np.asarray(value)
        expected = NUMPY_DTYPES[type]
        if array.dtype != expected:
            raise ValueError(f"a function takes {expected}, not {array.dtype}")
        return array
    return boxed(value)
