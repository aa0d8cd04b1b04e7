"""Failures of delegates in one interpreter, and the delegates that are no longer run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from delegraph.lazy_dataclass import replace
from delegraph.log import Logger

if TYPE_CHECKING:
    from delegraph.delegation.incident import Incident

logger = Logger(__name__)

_WARNING = 30  # logging.WARNING

_ALMOST = 1 - 1e-9  # a sum of shares may be slightly below 1

_MOST_INCIDENTS = 1000


class Incidents:
    """Incidents of one interpreter; equal incidents are counted, and logged only once.

    Error texts may differ at every invoke, so at most a thousand different incidents are kept.
    """

    def __init__(self) -> None:
        self._found: dict[Incident, Incident] = {}

    def record(
        self,
        incident: Incident,
        heir: str = "Delegraph's kernels",
        level: int = _WARNING,
    ) -> None:
        """Add an incident, or count it if an equal one is there; log a new one.

        Args:
            incident: a failure of a delegate that did not stop the interpreter.
            heir: name of the kernels or the delegate that compute the nodes instead, for the log.
            level: level of the log record.
        """
        known = self._found.get(incident)
        if known is None:
            if len(self._found) < _MOST_INCIDENTS:
                logger.log(level, "%s; %s take over", incident, heir)
                self._found[incident] = incident
        else:
            self._found[incident] = replace(known, count=known.count + 1)

    def all(self) -> tuple[Incident, ...]:
        """Return the incidents in the order of their first occurrence."""
        return tuple(self._found.values())


class Retires(Protocol):
    """A runner of a delegate node that can switch to the original nodes for good."""

    delegate: object

    def retire(self) -> None:
        """Let Delegraph's kernels run the node from now on."""


class Supervision:
    """An interpreter's records of its delegates: failures, and delegates that are no longer run.

    Delegates that are no longer run are called quarantined. The object also decides which runs are
    recomputed to check results.

    Attributes:
        has_warned: whether the warning about a failed default delegate has been given.
    """

    def __init__(self) -> None:
        self.has_warned = False
        self._quarantined: list[object] = []
        self._credit: dict[tuple[int, int], float] = {}
        self._running: WeakSet[Retires] = WeakSet()

    @property
    def has_quarantined(self) -> bool:
        """Whether any delegate has been quarantined."""
        return bool(self._quarantined)

    def watch(self, running: Retires) -> None:
        """Call ``running.retire()`` once the delegate of *running* is quarantined."""
        self._running.add(running)

    def quarantine(self, delegate: object) -> None:
        """Stop running *delegate*: its nodes are computed by Delegraph's kernels from now on."""
        self._quarantined.append(delegate)
        for running in list(self._running):
            if running.delegate is delegate:
                running.retire()

    def is_quarantined(self, delegate: object) -> bool:
        """Whether a delegate has been quarantined."""
        return any(delegate is known for known in self._quarantined)

    def is_due(self, subgraph: int, node_index: int, share: float) -> bool:
        """Whether this run of a node is among the *share* (0 to 1) of its runs to recompute.

        The first run of each node is among them. *subgraph* and *node_index* identify the node.

        >>> supervision = Supervision()
        >>> [supervision.is_due(0, 7, 0.5) for _ in range(5)]
        [True, False, True, False, True]
        """
        key = subgraph, node_index
        credit = self._credit.get(key, 1.0 - share) + share
        is_due = credit >= _ALMOST
        self._credit[key] = credit - 1.0 if is_due else credit
        return is_due
