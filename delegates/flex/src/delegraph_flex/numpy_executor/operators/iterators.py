"""Iterators: each has a position in a dataset, and returns one element per call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.dataset import Element, check_element, dataset_of
from delegraph_flex.numpy_executor.operators.variables import shared
from delegraph_flex.numpy_executor.registry import operator


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
    if not isinstance(handle, Reader):
        raise ValueError(f"handle is no iterator but a {handle.__class__.__name__}")
    return handle


@operator("IteratorV2")
def iterator(node: FlexNode) -> Step:
    """Function that returns the iterator shared under the name in the node's attributes."""
    reader = shared(node, "iterator", lambda name: Reader())
    return lambda: reader


@operator("AnonymousIteratorV3")
def anonymous_iterator(node: FlexNode) -> Step:
    """Return a function that returns a new iterator."""
    return lambda: Reader()


@operator("AnonymousIteratorV2")
def anonymous_iterator_with_deleter(node: FlexNode) -> Step:
    """Function that returns a new iterator and its deleter, which are the same object here."""
    return lambda: (reader := Reader(), reader)


@operator("MakeIterator")
def make_iterator(node: FlexNode) -> Step:
    """Function that sets an iterator to the first element of a dataset; it has no output."""

    def run(dataset: Any, handle: Any) -> tuple[()]:
        _reader(handle).elements = dataset_of(dataset).read()
        return ()

    return run


@operator("IteratorGetNext", "IteratorGetNextSync")
def get_next(node: FlexNode) -> Step:
    """Function that returns an iterator's next element; raises at the end of the dataset."""

    def run(handle: Any) -> list[Any]:
        elements = _reader(handle).elements
        if elements is None:
            raise ValueError("the iterator has no dataset yet")
        element = next(elements, None)
        if element is None:
            raise ValueError("End of sequence")
        check_element(element, node)
        return list(element)

    return run


@operator("DeleteIterator")
def delete_iterator(node: FlexNode) -> Step:
    """Return a function that sets an iterator to the end of its dataset; it has no output."""

    def run(handle: Any, deleter: Any) -> tuple[()]:
        _reader(handle).elements = iter(())
        return ()

    return run


@operator("IteratorGetNextAsOptional")
def get_next_as_optional(node: FlexNode) -> Step:
    """Function that returns an iterator's next element as an optional, empty at the end."""

    def run(handle: Any) -> Optional:
        elements = _reader(handle).elements
        if elements is None:
            raise ValueError("the iterator has no dataset yet")
        return Optional(next(elements, None))

    return run


def _optional(handle: Any) -> Optional:
    if not isinstance(handle, Optional):
        raise ValueError(f"handle is no optional but a {handle.__class__.__name__}")
    return handle


@operator("OptionalHasValue")
def has_value(node: FlexNode) -> Step:
    """Return a function that computes whether an optional has an element."""
    return lambda handle: np.array(_optional(handle).element is not None)


@operator("OptionalGetValue")
def get_value(node: FlexNode) -> Step:
    """Return a function that returns an optional's element, or raises if there is none."""

    def run(handle: Any) -> list[Any]:
        element = _optional(handle).element
        if element is None:
            raise ValueError("the optional has no value")
        check_element(element, node)
        return list(element)

    return run
