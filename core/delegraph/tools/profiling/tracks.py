"""Arranges events as tracks of nested slices, the form that trace viewers draw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from delegraph.delegation.placement import PartitionPlacement, refusals_in_words
from delegraph.runtime.execution.profile import ProfileEvent
from delegraph.tools.profiling.recording import Recording

HOST = "invoke"
"""Name of the track with the runs, and with the nodes that the runtime itself computes."""


@dataclass(frozen=True, slots=True)
class Slice:
    """An event with a start and a duration.

    Attributes:
        name: name of the event.
        start: nanoseconds since the first run began.
        end: nanoseconds since the first run began, not before *start*.
        event: event of the profile; None for a whole run.
        args: further facts about the event, as JSON data.
    """

    name: str
    start: int
    end: int
    event: ProfileEvent | None = None
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Track:
    """Slices, any two of which are disjoint or nested.

    Attributes:
        name: :data:`HOST` or the delegate's name, followed by a worker's number if the delegate's
            events overlap.
        delegate: name of the delegate; None for the host.
        slices: the slices by start; of equal starts, the longer slice is first.
    """

    name: str
    delegate: str | None
    slices: tuple[Slice, ...]


def tracks(recording: Recording) -> list[Track]:
    """Return the track of the host in *recording*, then the tracks of each delegate."""
    groups: dict[str | None, list[Slice]] = {None: []}
    origin = recording.runs[0].start
    for number, run in enumerate(recording.runs):
        start = run.start - origin
        groups[None].append(
            Slice(f"run {number}", start, start + run.duration, args={"run": number})
        )
        for event in run.events:
            groups.setdefault(event.delegate, []).append(_slice(recording, event, origin))
    found = []
    for delegate, slices in groups.items():
        for worker, lane in enumerate(lanes(slices)):
            name = HOST if delegate is None else f"delegate {delegate}"
            found.append(Track(name + f", worker {worker}" * (worker > 0), delegate, lane))
    return found


def lanes(slices: Iterable[Slice]) -> list[tuple[Slice, ...]]:
    """Distribute slices over as few groups as possible in which slices nest.

    >>> a, b, c = Slice("a", 0, 9), Slice("b", 2, 5), Slice("c", 4, 12)
    >>> [[slice.name for slice in lane] for lane in lanes([a, b, c])]
    [['a', 'b'], ['c']]
    """
    found: list[list[Slice]] = []
    stacks: list[list[int]] = []  # for each group, the ends of its open slices
    for one in sorted(slices, key=lambda slice: (slice.start, -slice.end)):
        place = next((i for i, ends in enumerate(stacks) if _nests(one, ends)), len(found))
        if place == len(found):
            found.append([])
            stacks.append([])
        found[place].append(one)
        stacks[place].append(one.end)
    return [tuple(lane) for lane in found]


def _nests(one: Slice, ends: list[int]) -> bool:
    """Whether the slice *one* lies inside of all slices that are still open.

    Before, ends of slices that ended earlier are removed from *ends*.
    """
    while ends and ends[-1] <= one.start:
        ends.pop()
    return not ends or one.end <= ends[-1]


def _slice(recording: Recording, event: ProfileEvent, origin: int) -> Slice:
    start = event.start - origin
    return Slice(event.name, start, start + event.duration, event, _args(recording, event))


def _args(recording: Recording, event: ProfileEvent) -> dict[str, Any]:
    """Return the details of *event* for the trace viewer, by name."""
    inputs, outputs = recording.borders(event)
    partition = recording.partition(event)
    nodes = recording.model_nodes(event)
    found: dict[str, Any] = {
        "subgraph": event.subgraph,
        "node": event.node_index,
        "operator": event.name,
        "inputs": _tensors(recording, event.subgraph, inputs),
        "outputs": _tensors(recording, event.subgraph, outputs),
    }
    if partition is not None:
        found |= {"delegate": partition.delegate, "partition": partition.index}
        found["model nodes"] = ", ".join(map(str, nodes))
    node = recording.node(event)
    if event.delegate is None and node is not None and node.rejections:
        found["reason"] = refusals_in_words(node, recording.placement.delegates)
    if partition is not None and node is None:
        found["bytes in"], found["bytes out"] = partition.input_bytes, partition.output_bytes
    else:
        found["bytes out"] = recording.total_bytes(event.subgraph, outputs)
    return found


def _tensors(recording: Recording, subgraph: int, indices: Sequence[int]) -> str:
    found = (recording.tensor(subgraph, index) for index in indices)
    return ", ".join(str(tensor) for tensor in found if tensor is not None)


@dataclass(frozen=True, slots=True)
class Flow:
    """A tensor value that crosses a boundary between delegates.

    Attributes:
        tensor: name of the tensor, or its number.
        bytes: size of the tensor; None if unknown.
        source, target: the slices that compute and read it.
    """

    tensor: str
    bytes: int | None
    source: Slice
    target: Slice


def flows(recording: Recording, all_tracks: Sequence[Track]) -> Iterator[Flow]:
    """Yield each value that crosses a partition boundary, run by run.

    A reader gets the value from the last earlier slice that computes it. Inputs and outputs of the
    graph have no flow.
    """
    writers: dict[tuple[int, int], list[Slice]] = {}
    readers: dict[tuple[int, int], list[Slice]] = {}
    for one in (one for track in all_tracks for one in track.slices):
        if one.event is not None and not recording.is_inside(one.event):
            inputs, outputs = recording.borders(one.event)
            for index in outputs:
                writers.setdefault((one.event.subgraph, index), []).append(one)
            for index in inputs:
                readers.setdefault((one.event.subgraph, index), []).append(one)
    crossing = {(c.subgraph, c.tensor): c for c in recording.placement.crossings}
    for key, found in crossing.items():
        name = found.name or f"tensor {found.tensor}"
        written = sorted(writers.get(key, ()), key=lambda one: one.end)
        for target in readers.get(key, ()):
            sources = [one for one in written if one.end <= target.start]
            if sources and _party(recording, sources[-1]) != _party(recording, target):
                yield Flow(name, found.bytes, sources[-1], target)


def _party(recording: Recording, one: Slice) -> PartitionPlacement | None:
    return None if one.event is None else recording.partition(one.event)
