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
        node_index: index of the delegate node that failed; -1 if no delegate node exists yet.
        nodes: indices of the model's nodes that the delegate's node computes.
        phase: phase of the delegate's work, such as ``"prepare"`` or ``"eval"``.
        error: text of the error.
        count: how often the failure happened.
        is_quarantined: whether the interpreter has stopped using the delegate.
        place: text with the model's first and last node, operators and tensors; empty if unknown.
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
    """Text for the first and last of *nodes*, with operator and tensor: ``node 3 (ADD, 'y')``."""
    words = []
    for node, registration in (*nodes[:1], *nodes[-1:]):
        names = [repr(tensors[i].name) for i in node.outputs[:1] if i >= 0]
        words.append(f"node {node.index} ({', '.join([registration.name, *names])})")
    return " to ".join(dict.fromkeys(words))
