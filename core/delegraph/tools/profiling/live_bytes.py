"""Live bytes over the time of a recording: the size of all values that are still needed."""

from __future__ import annotations

from collections.abc import Iterator

from delegraph.tools.profiling.recording import Recording, Run


def live_bytes(recording: Recording) -> Iterator[tuple[int, int]]:
    """Yield pairs: nanoseconds since the first run began, and the live bytes from that time on.

    The called subgraph's inputs, and the tensors that its nodes and partitions pass to each other,
    are counted. Constants, variables, and memory inside kernels and partitions are not counted. An
    arena is at least as large. Nothing is yielded for LiteRT, which does not report when its nodes
    run.
    """
    if recording.setup.runtime != "delegraph":
        return
    origin = recording.runs[0].start
    for run in recording.runs:
        yield from _of_run(recording, run, origin)


def _of_run(recording: Recording, run: Run, origin: int) -> Iterator[tuple[int, int]]:
    spec = recording.model.subgraphs[recording.entry]
    events = [e for e in run.events if e.subgraph == spec.index and not recording.is_inside(e)]
    borders = [recording.borders(event) for event in events]
    last = {i: n for n, (inputs, _) in enumerate(borders) for i in inputs}
    last |= dict.fromkeys(spec.outputs, len(events))
    held = {i for i in spec.inputs if last.get(i, -1) >= 0}
    yield run.start - origin, recording.total_bytes(recording.entry, held)
    for number, (event, (_, outputs)) in enumerate(zip(events, borders, strict=True)):
        held |= {i for i in outputs if i in last}
        yield event.start - origin, recording.total_bytes(recording.entry, held)
        held = {i for i in held if last[i] > number}
    yield run.start + run.duration - origin, 0
