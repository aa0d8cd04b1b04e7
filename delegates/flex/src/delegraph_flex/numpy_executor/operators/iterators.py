"""Iterators: where a reader of a dataset is, from one element to the next."""

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
    """What an iterator's handle stands for.

    Attributes:
        elements: those that are still to come; None before it is given a dataset.
    """

    elements: Iterator[Element] | None = None


@dataclass(frozen=True, slots=True)
class Optional:
    """An element, or None where there is none."""

    element: Element | None


def _reader(handle: Any) -> Reader:
    if not isinstance(handle, Reader):
        raise ValueError(f"handle is no iterator but a {handle.__class__.__name__}")
    return handle


@operator("IteratorV2")
def iterator(node: FlexNode) -> Step:
    """The iterator of a name."""
    reader = shared(node, "iterator", lambda name: Reader())
    return lambda: reader


@operator("AnonymousIteratorV3")
def anonymous_iterator(node: FlexNode) -> Step:
    """A new iterator."""
    return lambda: Reader()


@operator("AnonymousIteratorV2")
def anonymous_iterator_with_deleter(node: FlexNode) -> Step:
    """A new iterator, and what deletes it."""
    return lambda: (reader := Reader(), reader)


@operator("MakeIterator")
def make_iterator(node: FlexNode) -> Step:
    """Nothing; the iterator is at the first element of the dataset."""

    def run(dataset: Any, handle: Any) -> tuple[()]:
        _reader(handle).elements = dataset_of(dataset).read()
        return ()

    return run


@operator("IteratorGetNext", "IteratorGetNextSync")
def get_next(node: FlexNode) -> Step:
    """The next element."""

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
    """Nothing; the iterator is at the end."""

    def run(handle: Any, deleter: Any) -> tuple[()]:
        _reader(handle).elements = iter(())
        return ()

    return run


@operator("IteratorGetNextAsOptional")
def get_next_as_optional(node: FlexNode) -> Step:
    """The next element, or that there is none."""

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
    """Whether there is an element."""
    return lambda handle: np.array(_optional(handle).element is not None)


@operator("OptionalGetValue")
def get_value(node: FlexNode) -> Step:
    """The element that there is."""

    def run(handle: Any) -> list[Any]:
        element = _optional(handle).element
        if element is None:
            raise ValueError("the optional has no value")
        check_element(element, node)
        return list(element)

    return run
