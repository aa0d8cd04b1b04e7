"""Reasons why a delegate rejects nodes, and their collection over an execution plan.

A delegate rejects a node with a :class:`Rejection`. :func:`collect_rejections` asks the delegate
about each node of a plan. :mod:`delegraph.delegation.graph_partition_helper` adds rejections of
nodes that exceed the limits on partitions. ``Interpreter.placement`` shows all rejections by node
and delegate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, TypeAlias

import numpy as np

from delegraph.errors import DelegateError, in_words
from delegraph.json_records import JsonRecord
from delegraph.lazy_dataclass import dataclass, field
from delegraph.operators.registration import Node, Registration

Ask: TypeAlias = "Callable[[Registration, Node], bool | Rejection]"
"""Function that returns whether a delegate supports a node, or a rejection."""


def _text(value: object) -> str | None:
    return None if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Rejection(JsonRecord):
    """Reason why a delegate rejects a node; it is falsy, so that ``if supported:`` works.

    Attributes:
        constraint: short stable id, such as ``"dtype"`` or ``"rank"``; letters, digits, ``-_.``.
        message: one sentence for people; if empty, ``str()`` builds one from the other fields.
        actual: value that the node has.
        expected: value that the delegate needs.
        tensor: index of the tensor that causes the rejection; None if the whole node does.
    """

    json_properties: ClassVar = {"message": "__str__"}

    constraint: str
    message: str = ""
    actual: object = field(default=None, metadata={"json_value": _text})
    expected: object = field(default=None, metadata={"json_value": _text})
    tensor: int | None = None

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        if self.message:
            return self.message
        parts = [self.constraint]
        if self.actual is not None:
            parts.append(f"is {self.actual}")
        if self.expected is not None and self.expected != "":
            parts.append(f"needs {self.expected}")
        where = "" if self.tensor is None else f" (tensor {self.tensor})"
        return " ".join(parts[:1]) + (": " if len(parts) > 1 else "") + ", ".join(parts[1:]) + where


NO_REASON = Rejection("no-reason", "no reason given")
"""Rejection that is recorded for a delegate that answers ``False``."""


def collect_rejections(
    nodes: Iterable[tuple[Node, Registration]],
    ask: Ask,
    *,
    delegate: str,
    first: int,
    last: int | None,
) -> dict[int, Rejection]:
    """Return the rejections of a plan's nodes, by node index; accepted nodes are absent.

    Args:
        nodes: nodes of a plan, in execution order.
        ask: function that asks the delegate about a node.
        delegate: name of the delegate, for errors.
        first: supported nodes with a smaller index are rejected.
        last: supported nodes with a larger index are rejected; None means no limit. After the first
            such node, the delegate is not asked any more.

    Raises:
        DelegateError: *ask* raised an error or returned no valid answer; the error names the node.
    """
    rejections: dict[int, Rejection] = {}
    is_over = False
    for node, registration in nodes:
        found = None if is_over else _rejection(node, registration, ask, delegate)
        if found is None and last is not None and (is_over or node.index > last):
            is_over = True
            found = _out_of_range(node, f"up to {last}")
        elif found is None and node.index < first:
            found = _out_of_range(node, f"from {first}")
        if found is not None:
            rejections[node.index] = found
    return rejections


def _out_of_range(node: Node, limit: str) -> Rejection:
    return Rejection("node-range", actual=node.index, expected=f"a node index {limit}")


def _rejection(node: Node, registration: Registration, ask: Ask, delegate: str) -> Rejection | None:
    """Ask the delegate whether it supports a node; return its rejection, or None if it does.

    Raises:
        DelegateError: the delegate failed, or its answer is none of those allowed.
    """
    return answered(
        lambda: ask(registration, node),
        lambda: f"asked about node {node.index} ({registration.name})",
        delegate,
        node.index,
    )


def answered(
    ask: Callable[[], object], where: Callable[[], str], delegate: str, node_index: int
) -> Rejection | None:
    """Call *ask*; return the delegate's rejection, or None if it accepts the node.

    Args:
        ask: function that calls the delegate.
        where: function that returns text for errors, which names the nodes in question.
        delegate: name of the delegate, for errors.
        node_index: index of the node, for errors.

    Raises:
        DelegateError: *ask* raised an error or returned no valid answer.
    """
    try:
        answer = ask()
    except Exception as error:
        raise _error(f"{where()}: {in_words(error)}", delegate, node_index) from error
    if isinstance(answer, Rejection):
        return answer
    if isinstance(answer, bool | np.bool_):
        return None if answer else NO_REASON
    message = f"{where()}: its answer is {answer!r}, not a bool or a Rejection"
    raise _error(message, delegate, node_index)


def _error(message: str, delegate: str, node_index: int) -> DelegateError:
    return DelegateError(message, delegate=delegate, phase="claim", node_index=node_index)
