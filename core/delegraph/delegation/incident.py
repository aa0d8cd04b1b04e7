"""Record of a delegate's failure after which the interpreter went on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delegraph.errors import DelegatePhase
from delegraph.json_records import JsonRecord
from delegraph.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from delegraph.operators.registration import Node, Registration
    from delegraph.operators.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Incident(JsonRecord):
    """A failure of a delegate after which the interpreter went on.

    Attributes:
        delegate: name of the delegate.
        subgraph: index of the subgraph.
        node_index: index of the delegate's node; -1 if the delegate has no node.
        nodes: indices of the model's nodes that the delegate's node computes.
        phase: what the delegate was doing, such as ``"prepare"`` or ``"eval"``.
        error: text of the error.
        count: how often the failure happened.
        is_quarantined: whether the interpreter has stopped using the delegate.
        place: the model's nodes with operators and tensors, in words; empty if unknown.
    """

    delegate: str
    subgraph: int
    node_index: int
    nodes: tuple[int, ...]
    phase: DelegatePhase
    error: str
    count: int = 1
    is_quarantined: bool = False
    place: str = ""

    def __str__(self) -> str:
        times = "" if self.count == 1 else f" ({self.count} times)"
        state = "; quarantined" if self.is_quarantined else ""
        place = f" in place of {self.place}" if self.place else ""
        return (
            f"delegate {self.delegate!r}, node {self.node_index} of subgraph {self.subgraph}"
            f"{place}, {self.phase}: {self.error}{times}{state}"
        )


def named_nodes(nodes: Sequence[tuple[Node, Registration]], tensors: Sequence[Tensor]) -> str:
    """First and last node in words, with operators and tensors: ``node 3 (ADD, 'y')``."""
    words = []
    for node, registration in (*nodes[:1], *nodes[-1:]):
        names = [repr(tensors[i].name) for i in node.outputs[:1] if i >= 0]
        words.append(f"node {node.index} ({', '.join([registration.name, *names])})")
    return " to ".join(dict.fromkeys(words))
