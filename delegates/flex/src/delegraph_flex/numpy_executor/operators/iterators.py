"""Iterators: each has a position in a dataset, and returns one element per call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.dataset import Element, check_element, dataset_of
from delegraph_flex.numpy_executor.handles import of_kind, shared
from delegraph_flex.numpy_executor.registry import functions, operator, step_of, step_of_node


@dataclass(slots=True)
class Reader:
    """State of an iterator; the iterator's handle is this object.

    Attributes:
        elements: iterator over the remaining elements; None before the reader has a dataset.
    """

    elements: Iterator[Element] | None = None


@dataclass(frozen=True, slots=True)
class Optional:
    """Value of an optional: an element, or None if there is none."""

    element: Element | None


def _reader(handle: Any) -> Reader:
    return of_kind(handle, Reader, "iterator")


def _next(handle: Any) -> Element | None:
    elements = _reader(handle).elements
    if elements is None:
        raise ValueError("the iterator has no dataset yet")
    return next(elements, None)


@operator("IteratorV2")
def iterator(node: FlexNode) -> Step:
    """Function that returns the iterator shared under the name in the node's attributes."""
    reader = shared(node, "iterator", lambda name: Reader())
    return lambda: reader


functions(
    {
        "AnonymousIteratorV3": lambda: Reader(),
        "AnonymousIteratorV2": lambda: (reader := Reader(), reader),  # it is its own deleter
        "OptionalHasValue": lambda handle: np.array(_optional(handle).element is not None),
    }
)


@step_of("MakeIterator")
def make_iterator(dataset: Any, handle: Any) -> tuple[()]:
    """Set an iterator to the first element of a dataset."""
    _reader(handle).elements = dataset_of(dataset).read()
    return ()


@step_of_node("IteratorGetNext", "IteratorGetNextSync")
def get_next(node: FlexNode, handle: Any) -> list[Any]:
    """Return an iterator's next element; the end of the dataset is an error."""
    element = _next(handle)
    if element is None:
        raise ValueError("End of sequence")
    check_element(element, node)
    return list(element)


@step_of("DeleteIterator")
def delete_iterator(handle: Any, deleter: Any) -> tuple[()]:
    """Set an iterator to the end of its dataset."""
    _reader(handle).elements = iter(())
    return ()


@step_of("IteratorGetNextAsOptional")
def get_next_as_optional(handle: Any) -> Optional:
    """Return an iterator's next element as an optional, which is empty at the end."""
    return Optional(_next(handle))


def _optional(handle: Any) -> Optional:
    return of_kind(handle, Optional, "optional")


@step_of_node("OptionalGetValue")
def get_value(node: FlexNode, handle: Any) -> list[Any]:
    """Return an optional's element; an optional without one is an error."""
    element = _optional(handle).element
    if element is None:
        raise ValueError("the optional has no value")
    check_element(element, node)
    return list(element)
