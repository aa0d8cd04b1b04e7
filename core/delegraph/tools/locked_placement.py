"""Contents of a lock file: a placement as data, without the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LockedSubgraph:
    """A subgraph's part of a lock file.

    Attributes:
        name: the subgraph's name in the model; may be empty.
        operators: operator name of each node.
        delegates: delegate of each node; None means Delegraph's kernels.
        partitions: mapping from each delegate to its number of partitions.
    """

    name: str
    operators: tuple[str, ...]
    delegates: tuple[str | None, ...]
    partitions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PlacementLock:
    """A placement stored for a later comparison.

    Attributes:
        model: file name of the model, without its folder.
        sha256: SHA-256 digest of the model's bytes, in hexadecimal.
        delegates: applied delegates, in order, as ``Interpreter(delegates=...)`` takes them.
        delegate_files: Python files of delegates that are applied after these, as the command line
            takes them.
        subgraphs: the subgraphs in the model's order.
        by_default: distribution and version of each delegate that has nodes without being named;
            empty where delegates are named.
        versions: distribution and version of each named delegate that is installed; empty in lock
            files of older versions.
    """

    model: str
    sha256: str
    delegates: tuple[str, ...]
    delegate_files: tuple[str, ...]
    subgraphs: tuple[LockedSubgraph, ...]
    by_default: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def guards_a_delegate(self) -> bool:
        """Whether a delegate is named or has a node; otherwise the lock guards only the model."""
        owners = (owner for subgraph in self.subgraphs for owner in subgraph.delegates)
        return bool(self.delegates or self.delegate_files or any(owners))

    def is_about(self, default_delegate: str | None) -> bool:
        """Whether a lock to compare with this one counts nodes of *default_delegate* as its own.

        That is so if the lock names no delegate, or a delegate that was named is the default now.
        """
        locked = (subgraph.partitions for subgraph in self.subgraphs)
        return bool(self.by_default) or any(default_delegate in names for names in locked)
