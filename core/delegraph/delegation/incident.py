"""Record of a delegate's failure after which the interpreter went on."""

from __future__ import annotations

from dataclasses import dataclass

from delegraph.errors import DelegatePhase
from delegraph.json_records import JsonRecord


@dataclass(frozen=True, slots=True)
class Incident(JsonRecord):
    """A failure of a delegate after which the interpreter went on.

    Attributes:
        delegate: its name.
        subgraph: index of the subgraph.
        node_index: the delegate's node; -1 when it got none.
        nodes: the model's nodes that it computes.
        phase: what it was doing.
        error: the error in words.
        count: how often it happened.
        is_quarantined: whether the delegate is not asked any more.
    """

    delegate: str
    subgraph: int
    node_index: int
    nodes: tuple[int, ...]
    phase: DelegatePhase
    error: str
    count: int = 1
    is_quarantined: bool = False

    def __str__(self) -> str:
        times = "" if self.count == 1 else f" ({self.count} times)"
        state = "; quarantined" if self.is_quarantined else ""
        return (
            f"delegate {self.delegate!r}, node {self.node_index} of subgraph {self.subgraph}, "
            f"{self.phase}: {self.error}{times}{state}"
        )
