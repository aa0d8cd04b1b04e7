"""A recording as Chrome trace events, which open in https://ui.perfetto.dev and chrome://tracing.

Source:
    Trace Event Format: events ``M`` (names), ``X`` (complete), ``s`` and ``f`` (flow), ``C``
    (counter). Times are in microseconds; three digits after the point keep nanoseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from delegraph.tools.profiling.live_bytes import live_bytes
from delegraph.tools.profiling.recording import Recording
from delegraph.tools.profiling.tracks import Flow, Slice, Track, flows, tracks

_PROCESS = 1


def chrome_trace(recording: Recording) -> dict[str, Any]:
    """Return the runs in *recording* as a trace.

    One track holds the runs and the runtime's own kernels. Each delegate has a track with its
    partitions and their internal events, if it reports such events. Arrows show values that cross
    the boundary of a partition. A counter shows the bytes of values that are still needed.
    """
    found = tracks(recording)
    ids = {id(one): number for number, track in enumerate(found, 1) for one in track.slices}
    events = [
        *_names(recording, found),
        *(_complete(one, ids[id(one)]) for track in found for one in track.slices),
        *_arrows(flows(recording, found), ids),
        *_counter(recording),
    ]
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "setup": str(recording.setup),
            "placement": str(recording.placement),
            "initialization_ms": {s.name: round(1e3 * s.seconds, 3) for s in recording.stages},
            "notes": list(recording.notes()),
        },
    }


def write_chrome_trace(path: str | os.PathLike[str], recording: Recording) -> None:
    """Write a trace of the runs of *recording* to *path* as JSON."""
    text = json.dumps(chrome_trace(recording), allow_nan=False)
    Path(path).write_text(text + "\n", encoding="utf-8")


def _names(recording: Recording, found: Sequence[Track]) -> Iterator[dict[str, Any]]:
    yield _metadata("process_name", 0, {"name": f"delegraph {recording.setup}"})
    for number, track in enumerate(found, 1):
        yield _metadata("thread_name", number, {"name": track.name})
        yield _metadata("thread_sort_index", number, {"sort_index": number})


def _metadata(name: str, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": _PROCESS, "tid": thread, "args": args}


def _complete(one: Slice, thread: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": one.name,
        "cat": "run" if one.event is None else "node",
        "ts": one.start / 1000,
        "dur": (one.end - one.start) / 1000,
        "pid": _PROCESS,
        "tid": thread,
        "args": one.args,
    }


def _arrows(found: Iterator[Flow], ids: dict[int, int]) -> Iterator[dict[str, Any]]:
    for number, flow in enumerate(found, 1):
        arrow = {"name": flow.tensor, "cat": "value", "id": number, "pid": _PROCESS}
        args = {"bytes": flow.bytes}
        # An arrow must begin before the end of its slice, which is not a part of the slice.
        begin = max(flow.source.start, flow.source.end - 1)
        source = {"ph": "s", "ts": begin / 1000, "tid": ids[id(flow.source)], "args": args}
        target = {"ph": "f", "bp": "e", "ts": flow.target.start / 1000}
        yield {**arrow, **source}
        yield {**arrow, **target, "tid": ids[id(flow.target)], "args": args}


def _counter(recording: Recording) -> Iterator[dict[str, Any]]:
    for time, count in live_bytes(recording):
        yield {
            "ph": "C",
            "name": "live bytes",
            "ts": time / 1000,
            "pid": _PROCESS,
            "args": {"bytes": count},
        }
