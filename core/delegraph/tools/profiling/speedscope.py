"""Writes a recording for https://www.speedscope.app, which draws flame graphs.

Source:
    https://www.speedscope.app/file-format-schema.json: evented profiles.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from importlib_metadata import version

from delegraph.tools.profiling.recording import Recording
from delegraph.tools.profiling.tracks import Slice, lanes, tracks

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope(recording: Recording) -> dict[str, Any]:
    """Return the runs in *recording* as the content of a speedscope file.

    The first profile has nested events: run, node or partition, and the delegate's internal events.
    Further profiles have internal events that overlap, since a delegate may compute several
    operators at a time.
    """
    all_slices = [one for track in tracks(recording) for one in track.slices]
    found = lanes(all_slices)
    frames: dict[str, int] = {}
    profiles = [_profile(f"thread {i}", lane, frames) for i, lane in enumerate(found)]
    return {
        "$schema": SCHEMA,
        "exporter": f"delegraph {version('delegraph')}",
        "name": str(recording.setup),
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": profiles,
    }


def write_speedscope(path: str | os.PathLike[str], recording: Recording) -> None:
    """Write the runs of *recording* as a file for speedscope to *path*."""
    text = json.dumps(speedscope(recording), allow_nan=False)
    Path(path).write_text(text + "\n", encoding="utf-8")


def _profile(name: str, slices: Sequence[Slice], frames: dict[str, int]) -> dict[str, Any]:
    return {
        "type": "evented",
        "name": name,
        "unit": "nanoseconds",
        "startValue": min(one.start for one in slices),
        "endValue": max(one.end for one in slices),
        "events": list(_events(slices, frames)),
    }


def _events(slices: Iterable[Slice], frames: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Yield opening and closing events of *slices* in order of time, properly nested.

    *frames* maps frame names to numbers; new names are added.
    """
    opened: list[tuple[int, int]] = []  # end and frame

    def closed(until: int | None) -> Iterator[dict[str, Any]]:
        while opened and (until is None or opened[-1][0] <= until):
            end, frame = opened.pop()
            yield {"type": "C", "frame": frame, "at": end}

    for one in slices:
        yield from closed(one.start)
        frame = frames.setdefault(_frame_name(one), len(frames))
        opened.append((one.end, frame))
        yield {"type": "O", "frame": frame, "at": one.start}
    yield from closed(None)


def _frame_name(one: Slice) -> str:
    """Return the frame name of the slice *one*, equal in all runs."""
    if one.event is None:
        return "run"
    where = f" of subgraph {one.event.subgraph}" if one.event.subgraph else ""
    return f"{one.name} [node {one.event.node_index}{where}]"
