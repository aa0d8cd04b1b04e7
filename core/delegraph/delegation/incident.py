"""Record of a delegate's failure after which the interpreter went on."""

from __future__ import annotations

from delegraph.errors import DelegatePhase
from delegraph.json_records import JsonRecord
from delegraph.lazy_dataclass import dataclass


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
