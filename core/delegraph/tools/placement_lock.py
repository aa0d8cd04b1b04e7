"""Locks: placements that are stored, and compared with later ones to reveal changes."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from delegraph.delegation.placement import Placement, reason_in_words
from delegraph.errors import PluginError
from delegraph.json_records import JsonRecord
from delegraph.plugins import installed
from delegraph.quantities import plural
from delegraph.runtime.delegates.failure_memory import origin_of
from delegraph.runtime.delegates.requested_delegates import is_installed_name
from delegraph.tools.setup import file_and_options

if TYPE_CHECKING:
    from delegraph.runtime.interpreter import Interpreter


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
        delegates: applied delegates, in order, as ``Interpreter(delegates=...)`` takes them; those
            of files have absolute paths.
        delegate_files: Python files of delegates that are applied after these, as the command line
            takes them, with absolute paths.
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


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node that moved to another delegate.

    Attributes:
        subgraph: index of the node's subgraph.
        index: index of the node.
        op: operator name.
        before: delegate that ran the node; None means Delegraph's kernels.
        after: delegate that runs the node now; None means Delegraph's kernels, or the default
            delegate if the lock is of named ones.
        reason: text that says why ``before`` no longer runs the node; empty if no delegate ran it.
    """

    subgraph: int
    index: int
    op: str
    before: str | None
    after: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class PlacementDifference(JsonRecord):
    """Differences between a placement and a lock; false if there are none. ``str()`` is one line.

    Attributes:
        causes: changes of the model and of the list of delegates, one sentence each.
        nodes: nodes that moved to another delegate or to the kernels; empty if the model's nodes
            differ from the lock's.
        partitions: one sentence for each delegate with the same nodes in another number of
            partitions.
    """

    json_properties: ClassVar = {"summary": "__str__"}

    causes: tuple[str, ...] = ()
    nodes: tuple[NodeChange, ...] = ()
    partitions: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.causes or self.nodes or self.partitions)

    def __str__(self) -> str:
        left = Counter(change.before for change in self.nodes if change.before is not None)
        joined = Counter(change.after for change in self.nodes if change.after is not None)
        phrases = [
            *self.causes,
            *(f"{plural(count, 'node')} left {name}" for name, count in left.items()),
            *(f"{plural(count, 'node')} joined {name}" for name, count in joined.items()),
            *self.partitions,
        ]
        return "; ".join(phrases) or "no difference"


def lock_of(
    interpreter: Interpreter,
    model: str | os.PathLike[str],
    delegates: Sequence[str],
    delegate_files: Sequence[str] = (),
    *,
    counts_default: bool = False,
) -> PlacementLock:
    """Return an interpreter's placement as a lock.

    The interpreter has its delegates, and need not be allocated. Beside named delegates, nodes of
    the default delegate count as nodes without a delegate, because its presence says nothing about
    the named ones; *counts_default* counts them as its own. Of *model*, the file name is kept.
    """
    placement = interpreter.placement
    specs = interpreter.session.model.subgraphs
    owners: list[list[str | None]] = [[] for _ in specs]
    for node in placement.nodes:
        is_left = node.is_by_default and not counts_default
        owners[node.subgraph].append(None if is_left else node.delegate)
    partitions: list[Counter[str]] = [Counter() for _ in specs]
    for partition in placement.partitions:
        if counts_default or not partition.is_by_default:
            partitions[partition.subgraph][partition.delegate] += 1
    return PlacementLock(
        Path(model).name,
        hashlib.sha256(interpreter.session.model.content.tobytes()).hexdigest(),
        *with_paths(os.path.abspath, delegates, delegate_files),
        tuple(
            LockedSubgraph(
                spec.name,
                tuple(operator.name for operator in spec.operators),
                tuple(owners[spec.index]),
                dict(sorted(partitions[spec.index].items())),
            )
            for spec in specs
        ),
        {name: origin_of(name) for name in sorted(set[str]().union(*partitions))}
        if counts_default
        else {},
        _versions([*delegates, *(() if delegate_files else set[str]().union(*partitions))])
        if delegates
        else {},
    )


def _versions(delegates: Iterable[str]) -> dict[str, str]:
    """Return distribution and version of the installed ones of *delegates*, by sorted name."""
    found = {}
    for text in delegates:
        with suppress(PluginError):  # a library, or an object's delegate
            offer = installed().find(text)
            found[offer.spec.name] = f"{offer.plugin.distribution} {offer.plugin.version}"
    return dict(sorted(found.items()))


def with_paths(
    change: Callable[[str], str], delegates: Iterable[str], delegate_files: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return delegates and delegate files with other paths; names of delegates stay.

    *change* returns the new path for a path. Delegates are as ``Interpreter(delegates=...)`` takes
    them; files may have options.
    """

    def changed(text: str) -> str:
        path, options = file_and_options(text)
        return change(path) + f":{options}" * bool(options)

    files = tuple(map(changed, delegate_files))
    return tuple(d if is_installed_name(d) else changed(d) for d in delegates), files


# -- comparing -------------------------------------------------------------------------------------


def compare(
    locked: PlacementLock, present: PlacementLock, placement: Placement
) -> PlacementDifference:
    """Return the differences between the present placement and a lock.

    *present* is the lock of the present *placement*, which has the reasons that delegates give.
    """
    causes = []
    if locked.sha256 != present.sha256:
        causes.append(_model_change(locked, present))
    for what in ("delegates", "delegate_files"):
        before, after = getattr(locked, what), getattr(present, what)
        if before != after:
            name = what.replace("_", " ")
            causes.append(f"{name} changed: {_listed(before)} became {_listed(after)}")
    causes += _unnamed(locked, present, placement)
    if not _same_nodes(locked, present):
        if locked.sha256 == present.sha256:
            causes.append("the lock names other nodes than the model has")
        return PlacementDifference(tuple(causes))
    nodes = tuple(_node_changes(locked, present, placement))
    touched = {name for change in nodes for name in (change.before, change.after)}
    partitions = tuple(_partition_changes(locked, present, touched))
    if nodes or partitions:
        causes += _package_changes(locked, present)
    return PlacementDifference(tuple(causes), nodes, partitions)


def _unnamed(locked: PlacementLock, present: PlacementLock, placement: Placement) -> Iterator[str]:
    """Yield a sentence if the default delegate runs nodes that it had by its name in the lock."""
    name = placement.default_delegate
    if name is not None and not locked.by_default and locked.is_about(name):
        count = sum(subgraph.delegates.count(name) for subgraph in present.subgraphs)
        yield f"{name} is not named any more, and runs {plural(count, 'node')} by default"


def _package_changes(locked: PlacementLock, present: PlacementLock) -> Iterator[str]:
    """Yield a sentence for each delegate that another distribution or version provides."""
    now = {**present.by_default, **present.versions}
    for name, before in {**locked.by_default, **locked.versions}.items():
        after = now.get(name, before)
        if after != before:
            yield f"{name} is of {after}, not {before}"


def _same_nodes(locked: PlacementLock, present: PlacementLock) -> bool:
    return [s.operators for s in locked.subgraphs] == [s.operators for s in present.subgraphs]


def _model_change(locked: PlacementLock, present: PlacementLock) -> str:
    if not _same_nodes(locked, present):
        counts = [sum(len(s.operators) for s in lock.subgraphs) for lock in (locked, present)]
        what = f"{plural(counts[0], 'node')} became {counts[1]}"
        if counts[0] == counts[1]:
            what = "it has other operators"
    else:
        what = "same operators, other contents"
    return (
        f"model changed: {present.model} has sha256 {present.sha256[:12]}, not "
        f"{locked.sha256[:12]} ({what})"
    )


def _node_changes(
    locked: PlacementLock, present: PlacementLock, placement: Placement
) -> Iterator[NodeChange]:
    before, after = (
        [delegate for subgraph in lock.subgraphs for delegate in subgraph.delegates]
        for lock in (locked, present)
    )
    for old, new, node in zip(before, after, placement.nodes, strict=True):
        if old != new:
            reason = ""
            if old is not None:
                is_applied = old in placement.delegates
                reason = reason_in_words(node, old) if is_applied else f"{old} is not applied"
            yield NodeChange(node.subgraph, node.index, node.op, old, new, reason)


def _partition_changes(
    locked: PlacementLock, present: PlacementLock, touched: set[str | None]
) -> Iterator[str]:
    """Yield a sentence for each delegate with the same nodes in another number of partitions.

    *touched* are the delegates whose nodes have changed.
    """
    before, after = _partition_counts(locked), _partition_counts(present)
    for name in sorted(before.keys() | after.keys()):
        if name not in touched and before[name] != after[name]:
            yield f"{name} has {after[name]} partitions instead of {before[name]}"


def _partition_counts(lock: PlacementLock) -> Counter[str]:
    counts: Counter[str] = Counter()
    for subgraph in lock.subgraphs:
        counts.update(subgraph.partitions)
    return counts


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
