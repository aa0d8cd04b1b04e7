"""Reasons why operators do not run on the Edge TPU: rule, found value, limit and remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from delegraph.json_records import JsonRecord

AT_END = "leave it at the end of the model"
"""Remedy for an operator that other operators depend on.

At the end of the model, it keeps no other operator from the Edge TPU.
"""

NOTHING = "none: at the end of the model, it keeps nothing else from the Edge TPU"
"""Text in place of a remedy if no operator that could map depends on the operator."""


class Status(str, Enum):
    """Status of an operator, in the words of the real compiler's log."""

    MAPPED = "Mapped to Edge TPU"
    BEHIND = "More than one subgraph is not supported"
    UNKNOWN = "Operation not supported"
    VERSION = "Operation version not supported"
    DATA_TYPE = "Operation is working on an unsupported data type"
    RANK = "Tensor has unsupported rank (up to 3 innermost dimensions mapped)"
    LIMIT = "Operation is otherwise supported, but not mapped due to some unspecified limitation"


@dataclass(frozen=True)
class Reason(JsonRecord):
    """Reason why an operator runs on the CPU: one rule that it breaks.

    Attributes:
        rule: permanent short name of the rule, for programs.
        actual: value in the model, as text.
        expected: the limit.
        remedy: change that would make the operator map.
        status: status that the real compiler would log.

    >>> str(Reason("softmax-elements", "19,200 elements", "limit 16,000", "split the input"))
    '19,200 elements, limit 16,000'
    """

    rule: str
    actual: str
    expected: str
    remedy: str
    status: Status = Status.LIMIT

    def __str__(self) -> str:
        return f"{self.actual}, {self.expected}"
