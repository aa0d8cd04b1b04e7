"""Claims of a delegate on the nodes of a subgraph, stored in a file for later processes.

A file has a byte for each node of the execution plan, then the reasons for rejections as JSON. The
byte is 1 for a claimed node, 0 for a rejected one, and 2 if the delegate was not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delegraph import Rejection

REJECTED, CLAIMED, NOT_ASKED = range(3)

Answers = Mapping[int, Rejection | None]
"""Mapping from a node index to the node's rejection; None for a claimed node."""

_PLAIN = (str, int, float, bool, type(None))


def written(answers: Answers, plan: Sequence[int]) -> bytes | None:
    """Return the content of the file that lists the nodes that the delegate claims and rejects.

    The result is None if JSON cannot hold a reason.

    Args:
        answers: reason for the rejection of each node that the delegate was asked about; None for a
            claimed node.
        plan: indices of all nodes, in execution order.
    """
    reasons = [_reason(found) for index in plan if (found := answers.get(index)) is not None]
    if None in reasons:
        return None
    states = bytes(
        NOT_ASKED if index not in answers else CLAIMED if answers[index] is None else REJECTED
        for index in plan
    )
    if not reasons:
        return states
    import json  # imported here: most subgraphs are claimed as a whole and need no JSON

    return states + json.dumps(reasons).encode()


def read(content: bytes, plan: Sequence[int]) -> Answers | None:
    """Return the claimed and rejected nodes that the content of a file lists.

    The result is None if the file is damaged, or was written for another execution plan.

    Args:
        content: content of the file.
        plan: indices of all nodes, in execution order.
    """
    states, text = content[: len(plan)], content[len(plan) :]
    if len(states) != len(plan) or not set(states) <= {REJECTED, CLAIMED, NOT_ASKED}:
        return None
    reasons: list[Rejection] = []
    if text:
        import json

        try:
            reasons = [_rejection(each) for each in json.loads(text)]
        except (ValueError, TypeError, LookupError, RecursionError):
            return None
    if len(reasons) != states.count(REJECTED):
        return None
    left = iter(reasons)
    return {
        index: None if state == CLAIMED else next(left)
        for index, state in zip(plan, states, strict=True)
        if state != NOT_ASKED
    }


def _reason(found: Rejection) -> list[object] | None:
    """Return the fields of a rejection as JSON holds them; None if JSON cannot hold them."""
    fields = [found.constraint, found.message, found.actual, found.expected, found.tensor]
    if not all(map(_is_plain, fields)):
        return None
    return [{"tuple": value} if isinstance(value, tuple) else value for value in fields]


def _is_plain(value: object) -> bool:
    if type(value) in (list, tuple):
        return all(type(each) in _PLAIN for each in value)  # type: ignore[attr-defined]
    return type(value) in _PLAIN


def _rejection(fields: object) -> Rejection:
    if not isinstance(fields, list) or len(fields) != 5:
        raise TypeError
    fields = [tuple(each["tuple"]) if isinstance(each, dict) else each for each in fields]
    if not all(map(_is_plain, fields)):
        raise TypeError
    constraint, message, actual, expected, tensor = fields
    if not isinstance(constraint, str) or not isinstance(message, str):
        raise TypeError
    if tensor is not None and type(tensor) is not int:
        raise TypeError
    return Rejection(constraint, message, actual, expected, tensor)
