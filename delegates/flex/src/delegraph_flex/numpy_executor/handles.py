"""Handles: the objects behind resources and variants, and how nodes share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from delegraph_flex.flex_node import FlexNode

T = TypeVar("T")


def of_kind(handle: object, kind: type[T], name: str) -> T:
    """Return *handle*, after a check that it is a *kind*; *name* is this kind's in the error.

    Raises:
        ValueError: the handle is something else.
    """
    if not isinstance(handle, kind):
        raise ValueError(f"handle is no {name} but a {handle.__class__.__name__}")
    return handle


def shared(node: FlexNode, kind: str, make: Callable[[str], T]) -> T:
    """Return the resource with a node's container and name; *make* creates a missing resource.

    *kind* is the kind of resource, which is a part of its key. A resource that has no name belongs
    to its node only.
    """
    container = node.bytes("container", b"").decode(errors="replace")
    name = node.bytes("shared_name", b"").decode(errors="replace")
    if not name:
        return make(f"of node {node.index}")
    key = ("flex", kind, container, name)
    found: T | None = node.around.resources.get(key)
    if found is None:
        found = node.around.resources[key] = make(name)
    return found
